"""A back end of Cinder whose volumes hold nothing: whatever is asked of it has been done."""
from cinder import interface
from cinder.volume import driver

PLENTY = 100000


@interface.volumedriver
class NoVolumes(driver.VolumeDriver):
    VERSION = "1.0"

    def check_for_setup_error(self):
        return None

    def _update_volume_stats(self):
        pool = {"pool_name": "nothing", "total_capacity_gb": PLENTY, "free_capacity_gb": PLENTY,
                "provisioned_capacity_gb": 0, "allocated_capacity_gb": 0, "reserved_percentage": 0,
                "multiattach": True, "thin_provisioning_support": True, "max_over_subscription_ratio": "1000.0"}
        self._stats = {"volume_backend_name": self.configuration.safe_get("volume_backend_name"),
                       "vendor_name": "capwasm", "driver_version": self.VERSION, "storage_protocol": "none",
                       "multiattach": True, "online_extend_support": True, "pools": [pool]}

    def initialize_connection(self, volume, connector):
        return {"driver_volume_type": "none", "data": {"volume_id": volume["id"]}}

    def clone_image(self, context, volume, location, meta, service):
        return {}, True

    def migrate_volume(self, context, volume, host):
        return False, None

    def _done(self, *arguments, **named):
        return None

    do_setup = create_volume = delete_volume = extend_volume = _done
    create_snapshot = delete_snapshot = create_volume_from_snapshot = create_cloned_volume = _done
    copy_image_to_volume = copy_volume_to_image = _done
    create_export = ensure_export = remove_export = terminate_connection = _done
