"""Fills the services through their APIs; runs in the virtual environment. Every step finds before it makes.

`seed.py ADMIN_CLOUDS_YAML PASSWORD STEP ARGUMENT...`
"""
import io
import os
import pathlib
import sys
import time

import openstack
import yaml

REGION = "RegionOne"
FLAVORS = {"m1.tiny": (1, 512, 1), "m1.small": (1, 2048, 20), "m1.medium": (2, 4096, 40)}


def connect(path, cloud):
    config = openstack.config.OpenStackConfig(config_files=[str(path)], load_envvars=False)
    return openstack.connection.Connection(config=config.get_one(cloud))


def until(what, seconds, missing):
    """Waits until nothing is missing."""
    end = time.monotonic() + seconds
    while left := missing():
        if time.monotonic() > end:
            sys.exit(f"{what}: still missing after {seconds} s: {left}")
        time.sleep(0.3)


def identity(admin, password, glance, placement, nova, neutron, cinder, octavia):
    """Roles, the services' user, and the catalog."""
    api = admin.identity
    roles = {role.name: role for role in api.roles()}
    for name in ("service", "load-balancer_member", "load-balancer_admin"):
        roles.setdefault(name, None)
        roles[name] = roles[name] or api.create_role(name=name)
    project = api.find_project("service") or api.create_project(name="service", domain_id="default")
    user = api.find_user("svc") or api.create_user(name="svc", password=password, domain_id="default")
    for role in ("admin", "service"):
        api.assign_project_role_to_user(project, user, roles[role])
    api.assign_project_role_to_user(api.find_project("admin"), api.find_user("admin"), roles["load-balancer_admin"])
    there = {service.type for service in api.services()}
    for name, kind, url in (
            ("glance", "image", glance), ("placement", "placement", placement), ("nova", "compute", nova + "/v2.1"),
            ("neutron", "network", neutron), ("cinder", "block-storage", cinder + "/v3"),
            ("cinderv3", "volumev3", cinder + "/v3"), ("octavia", "load-balancer", octavia)):
        if kind not in there:
            service = api.create_service(name=name, type=kind)
            for interface in ("public", "internal", "admin"):
                api.create_endpoint(service_id=service.id, interface=interface, region_id=REGION, url=url)


def computes(admin, password, *hosts):
    """Waits until Nova's daemons have reported."""
    wanted = {host.partition("=")[0] for host in hosts} | {"nova-scheduler", "nova-conductor"}

    def missing():
        up = [service for service in admin.compute.services() if service.state == "up"]
        return wanted - {service.host for service in up} - {service.binary for service in up}
    until("daemons of Nova", 120, missing)


def cloud(admin, password, path, auth_url, *hosts):
    """What a user finds: an external network, flavors, an image, zones, a project, and three ways to log in."""
    external_network(admin.network)
    for name, (cpus, memory, disk) in FLAVORS.items():
        if not admin.compute.find_flavor(name):
            admin.compute.create_flavor(name=name, vcpus=cpus, ram=memory, disk=disk, is_public=True)
    if not admin.image.find_image("node-image"):
        admin.image.create_image(
            name="node-image", disk_format="raw", container_format="bare", visibility="public", os_type="linux",
            os_distro="ubuntu", data=io.BytesIO(bytes(65536)), validate_checksum=False, wait=True, allow_duplicates=True)
    zones(admin.compute, hosts)
    project(admin.identity, password)

    wanted = {host.partition("=")[0] for host in hosts}
    until("inventories of computes in Placement", 90, lambda: wanted - {
        provider.name for provider in admin.placement.resource_providers()
        if list(admin.placement.resource_provider_inventories(provider))})
    until("pools of Cinder", 90, lambda: not list(admin.block_storage.backend_pools()) and "nothing")
    credentials(pathlib.Path(path), auth_url, password)


def external_network(api):
    network = api.find_network("public") or api.create_network(
        name="public", is_router_external=True, is_shared=False, provider_network_type="flat",
        provider_physical_network="public")
    if not api.find_subnet("public-subnet"):
        api.create_subnet(
            name="public-subnet", network_id=network.id, ip_version=4, cidr="198.51.100.0/24",
            gateway_ip="198.51.100.1", is_dhcp_enabled=False,
            allocation_pools=[{"start": "198.51.100.10", "end": "198.51.100.250"}])


def zones(api, hosts):
    aggregates = {aggregate.name: aggregate for aggregate in api.aggregates()}
    for host, _, zone in (host.partition("=") for host in hosts):
        aggregate = aggregates.get(zone) or api.create_aggregate(name=zone, availability_zone=zone)
        if host not in (aggregate.hosts or []):
            api.add_host_to_aggregate(aggregate, host)


def project(api, password):
    demo = api.find_project("demo") or api.create_project(name="demo", domain_id="default")
    user = api.find_user("demo") or api.create_user(
        name="demo", password=password, domain_id="default", default_project_id=demo.id)
    for role in api.roles():
        if role.name in ("member", "load-balancer_member"):
            api.assign_project_role_to_user(demo, user, role)


def credentials(path, auth_url, password):
    """clouds.yaml. An application credential's secret cannot be read again, so one that works is kept."""
    def entry(auth, **more):
        return {"region_name": REGION, "interface": "public", "identity_api_version": 3, **more,
                "auth": {"auth_url": auth_url, **auth}}

    def user(name):
        return entry({"username": name, "password": password, "project_name": name, "user_domain_name": "Default",
                      "project_domain_name": "Default"})
    clouds = {"ost-admin": user("admin"), "ost-demo": user("demo")}
    name = "ost-demo-appcred"
    kept = yaml.safe_load(path.read_text())["clouds"].get(name) if path.exists() else None
    if kept and kept["auth"]["auth_url"] == auth_url:
        clouds[name] = kept
        write(path, clouds)
        return
    write(path, clouds)
    demo = connect(path, "ost-demo")
    me = demo.current_user_id
    for stale in demo.identity.application_credentials(me):
        demo.identity.delete_application_credential(me, stale.id)
    made = demo.identity.create_application_credential(me, name="ost", secret="app-cred-secret")
    clouds[name] = entry({"application_credential_id": made.id, "application_credential_secret": "app-cred-secret"},
                         auth_type="v3applicationcredential")
    write(path, clouds)


def write(path, clouds):
    part = path.with_suffix(".part")
    part.touch(mode=0o600)
    part.write_text(yaml.safe_dump({"clouds": clouds}, sort_keys=False))
    os.replace(part, path)


if __name__ == "__main__":
    steps = {"identity": identity, "computes": computes, "cloud": cloud}
    steps[sys.argv[3]](connect(sys.argv[1], "admin"), sys.argv[2], *sys.argv[4:])
