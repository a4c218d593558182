"""Configuration files of all daemons, as sections of options."""
import getpass
import subprocess

from cloud.problem import Problem


def write(layout, debug):
    """Writes all of them. Nothing in them changes while a stack runs."""
    for service, files in _files(layout, debug).items():
        (layout.etc / service / "policy.d").mkdir(parents=True, exist_ok=True)
        (layout.var / service / "lock").mkdir(parents=True, exist_ok=True)
        for name, sections in files.items():
            path = layout.etc / service / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_ini(sections))
    # Nova's application looks for it beside its configuration.
    paste = layout.etc / "nova" / "api-paste.ini"
    paste.unlink(missing_ok=True)
    paste.symlink_to(layout.venv / "etc/nova/api-paste.ini")
    (layout.etc / "mariadb.cnf").write_text(_ini({"mariadbd": _mariadb(layout)}))
    (layout.etc / "rabbitmq.conf").write_text(_ini({None: {
        "listeners.tcp.1": f"127.0.0.1:{layout.port('rabbit')}", "log.console": True, "log.console.level": "warning"}}))
    (layout.etc / "rabbitmq-plugins").write_text("[].\n")
    _certificate(layout)


def computes(layout):
    """Hosts of Nova with their availability zones."""
    return {f"compute{index}": zone for index, zone in enumerate(layout.zones, 1)} | {"compute-fail": layout.failing_zone}


def _ini(sections):
    def text(value):
        return str(value).lower() if isinstance(value, bool) else str(value)
    lines = []
    for section, options in sections.items():
        if section is not None:
            lines.append(f"[{section}]")
        # An option without a value is a flag.
        lines += [key if value is None else f"{key} = {text(value)}" for key, value in options.items()]
    return "\n".join(lines) + "\n"


def _files(layout, debug):
    nova = {"nova.conf": _nova(layout, debug, "openstack", "fake.FakeDriverWithoutFakeNodes", layout.var / "nova")}
    for host, zone in computes(layout).items():
        driver = "fake.FakeBuildAbortDriver" if zone == layout.failing_zone else "fake.FakeDriverWithoutFakeNodes"
        (layout.var / host).mkdir(parents=True, exist_ok=True)
        nova[f"{host}.conf"] = _nova(layout, debug, host, driver, layout.var / host)
    return {
        "keystone": {"keystone.conf": _keystone(layout, debug)},
        "glance": {"glance-api.conf": _glance(layout, debug)},
        "placement": {"placement.conf": _placement(layout, debug)},
        "neutron": {"neutron.conf": _neutron(layout, debug), "plugins/ml2/ml2_conf.ini": _ml2()},
        "nova": nova,
        "cinder": {"cinder.conf": _cinder(layout, debug)},
        "octavia": {"octavia.conf": _octavia(layout, debug)},
    }


def _database(layout, name):
    return {"connection": f"mysql+pymysql://root@localhost/{name}?unix_socket={layout.socket}&charset=utf8"}


def _login(layout):
    """How a service logs in."""
    return {"auth_type": "password", "auth_url": layout.url("keystone"), "username": "svc", "password": layout.secret,
            "project_name": "service", "user_domain_id": "default", "project_domain_id": "default",
            "region_name": layout.region}


def _client(layout):
    return _login(layout) | {"valid_interfaces": "internal"}


def _common(layout, service, debug):
    """Sections of every service that takes requests."""
    return {
        "DEFAULT": {"debug": debug},
        "keystone_authtoken": _login(layout) | {
            "www_authenticate_uri": layout.url("keystone"), "interface": "internal", "service_token_roles": "service",
            "service_token_roles_required": True},
        "oslo_concurrency": {"lock_path": layout.var / service / "lock"},
        "oslo_messaging_notifications": {"driver": "noop"},
        "oslo_policy": {"policy_dirs": layout.etc / service / "policy.d"},
    }


def _on_bus(layout, service, debug):
    """The same of one that is several processes."""
    sections = _common(layout, service, debug)
    sections["DEFAULT"] |= {"transport_url": layout.bus, "state_path": layout.var / service, "host": "openstack",
                            "rpc_response_timeout": 60}
    return sections


def _unlimited(*names):
    return dict.fromkeys(names, -1)


def _keystone(layout, debug):
    keys = layout.etc / "keystone"
    return {
        "DEFAULT": {"debug": debug},
        "database": _database(layout, "keystone"),
        "token": {"provider": "fernet", "expiration": 86400},
        "fernet_tokens": {"key_repository": keys / "fernet-keys"},
        "fernet_receipts": {"key_repository": keys / "fernet-keys"},
        "credential": {"key_repository": keys / "credential-keys"},
        "identity": {"password_hash_rounds": 4},
        # There is one process, so a cache in it is never stale; without one each request costs 0.15 s of a core.
        "cache": {"enabled": True, "backend": "dogpile.cache.memory_pickle", "expiration_time": 600},
        "oslo_policy": {"policy_dirs": keys / "policy.d"},
    }


def _glance(layout, debug):
    data = layout.var / "glance"
    sections = _common(layout, "glance", debug)
    sections["DEFAULT"] |= {"enabled_backends": "files:file", "worker_self_reference_url": layout.url("glance")}
    return sections | {
        "database": _database(layout, "glance"),
        "glance_store": {"default_backend": "files"},
        "files": {"filesystem_store_datadir": data / "images"},
        "os_glance_staging_store": {"filesystem_store_datadir": data / "staging"},
        "os_glance_tasks_store": {"filesystem_store_datadir": data / "tasks"},
        "paste_deploy": {"flavor": "keystone", "config_file": layout.venv / "etc/glance/glance-api-paste.ini"},
    }


def _placement(layout, debug):
    return _common(layout, "placement", debug) | {
        "api": {"auth_strategy": "keystone"}, "placement_database": _database(layout, "placement")}


def _nova(layout, debug, host, driver, state):
    sections = _on_bus(layout, "nova", debug)
    sections["DEFAULT"] |= {
        "state_path": state, "host": host, "my_ip": "127.0.0.1", "compute_driver": driver,
        "instances_path": state / "instances", "report_interval": 20, "service_down_time": 120,
        "update_resources_interval": 0, "sync_power_state_interval": -1, "reclaim_instance_interval": 0,
        "max_concurrent_builds": 20, "block_device_allocate_retries_interval": 1, "graceful_shutdown_timeout": 2}
    if host == "compute-fail":
        # Weighed last: a server for which no zone is asked never comes here.
        sections["DEFAULT"] |= {"reserved_host_memory_mb": 790000, "reserved_host_cpus": 990,
                                "reserved_host_disk_mb": 600000000}
    if host == "openstack":
        sections |= {"api_database": _database(layout, "nova_api"), "database": _database(layout, "nova")}
    return sections | {
        "api": {"auth_strategy": "keystone"},
        "wsgi": {"api_paste_config": layout.venv / "etc/nova/api-paste.ini"},
        "conductor": {"workers": 1},
        "scheduler": {"workers": 1, "max_placement_results": 100},
        "filter_scheduler": {"track_instance_changes": False},
        "quota": _unlimited("instances", "cores", "ram", "key_pairs", "server_groups", "server_group_members"),
        "glance": {"api_servers": layout.url("glance"), "num_retries": 2},
        "placement": _client(layout),
        "neutron": _client(layout) | {"service_metadata_proxy": False},
        "cinder": _client(layout) | {"catalog_info": "block-storage:cinder:internalURL"},
        "service_user": _client(layout) | {"send_service_user_token": True},
        "vnc": {"enabled": False}, "spice": {"enabled": False}, "cache": {"enabled": False},
    }


def _neutron(layout, debug):
    sections = _on_bus(layout, "neutron", debug)
    sections["DEFAULT"] |= {
        "auth_strategy": "keystone", "core_plugin": "ml2", "service_plugins": "router,trunk,port_forwarding,qos",
        "api_paste_config": layout.venv / "etc/neutron/api-paste.ini", "allow_overlapping_ips": True,
        "notify_nova_on_port_status_changes": True, "notify_nova_on_port_data_changes": True,
        "dhcp_agent_notification": False, "api_workers": 1, "rpc_workers": 0, "rpc_state_report_workers": 0,
        "dns_domain": "openstacklocal."}
    return sections | {
        "database": _database(layout, "neutron"), "nova": _client(layout),
        "quotas": _unlimited("quota_network", "quota_subnet", "quota_port", "quota_router", "quota_floatingip",
                             "quota_security_group", "quota_security_group_rule"),
    }


def _ml2():
    return {
        "ml2": {"type_drivers": "flat,vlan,vxlan,local", "tenant_network_types": "vxlan",
                "mechanism_drivers": "agentless",
                "extension_drivers": "port_security,uplink_status_propagation,qos,dns", "path_mtu": 1500},
        "ml2_type_flat": {"flat_networks": "public,physnet1"},
        "ml2_type_vlan": {"network_vlan_ranges": "physnet1:100:999"},
        "ml2_type_vxlan": {"vni_ranges": "1:10000"},
        "securitygroup": {"enable_security_group": True},
    }


def _cinder(layout, debug):
    sections = _on_bus(layout, "cinder", debug)
    sections["DEFAULT"] |= {
        "auth_strategy": "keystone", "api_paste_config": layout.venv / "etc/cinder/api-paste.ini",
        "resource_query_filters_file": layout.venv / "etc/cinder/resource_filters.json",
        "backend_stats_polling_interval": 10, "storage_availability_zone": "nova",
        "allow_availability_zone_fallback": True, "enabled_backends": "nothing,elsewhere", "default_volume_type": "__DEFAULT__",
        "glance_api_servers": layout.url("glance"), "image_conversion_dir": layout.var / "cinder/conversion",
        "report_interval": 20, "service_down_time": 120, "graceful_shutdown_timeout": 2,
        **_unlimited("quota_volumes", "quota_gigabytes", "quota_snapshots")}
    return sections | {
        "nothing": {"volume_driver": "volumes.NoVolumes", "volume_backend_name": "nothing"},
        # A second zone.
        "elsewhere": {"volume_driver": "volumes.NoVolumes", "volume_backend_name": "elsewhere",
                      "backend_availability_zone": layout.zones[1]},
        "database": _database(layout, "cinder"),
        "coordination": {"backend_url": f"file://{layout.var}/cinder/coordination"},
        "nova": _client(layout), "service_user": _client(layout) | {"send_service_user_token": True},
    }


def _octavia(layout, debug):
    etc = layout.etc / "octavia"
    return _on_bus(layout, "octavia", debug) | {
        "api_settings": {
            "bind_host": "127.0.0.1", "bind_port": layout.port("octavia-api"), "auth_strategy": "keystone",
            "enabled_provider_drivers": "amphora:amphorae that are nowhere, octavia:the same as amphora, "
                                        "ovn:a northbound data base that nobody reads",
            "default_provider_driver": "amphora", "api_base_uri": layout.url("octavia-api"), "healthcheck_enabled": True},
        "database": _database(layout, "octavia"),
        "oslo_messaging": {"topic": "octavia_prov"},
        "controller_worker": {
            "workers": 1, "amphora_driver": "amphora_noop_driver", "compute_driver": "nowhere",
            "network_driver": "allowed_address_pairs_driver", "image_driver": "image_noop_driver",
            "volume_driver": "volume_noop_driver", "distributor_driver": "distributor_noop_driver",
            "amp_flavor_id": 1, "amp_image_tag": "amphora",
            "amp_boot_network_list": "00000000-0000-4000-8000-000000000001", "client_ca": etc / "ca.pem",
            "loadbalancer_topology": "SINGLE", "amp_active_retries": 10, "amp_active_wait_sec": 1},
        "haproxy_amphora": {"server_ca": etc / "ca.pem", "client_cert": etc / "client.pem",
                            "connection_max_retries": 3, "connection_retry_interval": 1},
        "certificates": {"cert_manager": "local_cert_manager", "cert_generator": "local_cert_generator",
                         "ca_certificate": etc / "ca.pem", "ca_private_key": etc / "ca.key",
                         "ca_private_key_passphrase": layout.secret,
                         "server_certs_key_passphrase": "insecure-key-do-not-use-this-key"},
        "networking": {"allow_vip_network_id": True, "allow_vip_subnet_id": True, "allow_vip_port_id": True,
                       "port_detach_timeout": 10, "retry_interval": 1},
        "health_manager": {"heartbeat_key": "insecure", "controller_ip_port_list": "127.0.0.1:5555"},
        "task_flow": {"engine": "serial", "jobboard_enabled": False},
        "quotas": _unlimited(*(f"default_{what}_quota" for what in
                               ("load_balancer", "listener", "member", "pool", "health_monitor"))),
        "service_auth": _client(layout),
        "ovn": {"ovn_nb_connection": f"unix:{layout.northbound}"},
        "neutron": {"endpoint_type": "internalURL", "region_name": layout.region, "valid_interfaces": "internal"},
    }


def _mariadb(layout):
    return {
        "user": getpass.getuser(), "datadir": layout.var / "mariadb", "socket": layout.socket,
        "pid-file": layout.run / "mariadb.id", "skip-networking": None, "skip-name-resolve": None,
        "max_connections": 500, "innodb_buffer_pool_size": "128M", "innodb_log_file_size": "32M",
        # Nothing in it has to outlive the machine.
        "innodb_flush_log_at_trx_commit": 0, "innodb_doublewrite": 0, "performance_schema": "OFF",
        "character-set-server": "utf8mb3",
    }


def _certificate(layout):
    """Octavia signs certificates of amphorae; it wants its key encrypted."""
    etc = layout.etc / "octavia"
    key, certificate = etc / "ca.key", etc / "ca.pem"
    if not certificate.exists():
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-passout", f"pass:{layout.secret}", "-days", "3650",
             "-subj", "/CN=octavia", "-keyout", str(key), "-out", str(certificate)], capture_output=True, text=True)
        if made.returncode != 0:
            raise Problem(f"openssl makes no certificate: {made.stderr}")
    (etc / "client.pem").write_text(certificate.read_text() + key.read_text())
