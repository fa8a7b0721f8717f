"""Azure's own Python SDK, unmodified, against the simulator's HTTPS endpoint.

Usage: test_sdk.py PROGRAM, where PROGRAM is bringup-azure-sim. Each check prints one line; the
last line counts them. The simulator's clock is manual: the run jumps over minutes, and nothing
depends on the speed of the computer.
"""

import os
import pathlib
import sys
import tempfile
import time
import traceback

from azure.core.credentials import AccessToken
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceNotFoundError,
)
from azure.identity import (
    ClientSecretCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient

import bodies
from bodies import SUBSCRIPTION
from simulator import Simulator

HERE = pathlib.Path(__file__).parent
TENANT = "11111111-1111-1111-1111-111111111111"
CLIENT = "22222222-2222-2222-2222-222222222222"
SCOPE = "https://management.azure.com/.default"
GROUP = "rg-nodes"
# The SDK waits this long, in real time, between two reads of an operation.
POLL = {"polling_interval": 0.02}


class StaticToken:
    """A credential that already has a token."""

    def __init__(self, token):
        self.token = token

    def get_token(self, *scopes, **kwargs):
        return AccessToken(self.token, int(time.time()) + 3600)


class Run:
    """One simulator, one set of clients, and the checks in the order of a node's life."""

    def __init__(self, program):
        self.simulator = Simulator(program, str(HERE / "scenario.yaml"))
        self.directory = tempfile.TemporaryDirectory()
        self.trust = {"connection_verify": self.simulator.ca_file}
        self.credential = ClientSecretCredential(
            TENANT,
            CLIENT,
            "a secret",
            authority=self.simulator.authority,
            disable_instance_discovery=True,
            **self.trust,
        )
        self.compute = self.client(ComputeManagementClient, self.credential)
        self.network = self.client(NetworkManagementClient, self.credential)

    def client(self, kind, credential, **options):
        return kind(
            credential,
            SUBSCRIPTION,
            base_url=self.simulator.endpoint,
            credential_scopes=[SCOPE],
            **self.trust,
            **options,
        )

    def begin_nic(self, name, **options):
        nics = self.network.network_interfaces
        return nics.begin_create_or_update(GROUP, name, bodies.nic(), **options)

    def put_nic(self, name):
        poller = self.begin_nic(name, **POLL)
        self.simulator.advance("1m")
        return poller.result()

    def begin_vm(self, name, nic, size="Standard_D2s_v5", version="202601.13.0"):
        vm = bodies.vm(name, nic.id, size, version)
        return self.compute.virtual_machines.begin_create_or_update(GROUP, name, vm, **POLL)

    # The checks. The run prints their names.

    def check_a_client_secret_gets_a_token(self):
        token = self.credential.get_token(SCOPE)
        assert token.token.endswith(CLIENT), token.token
        assert token.expires_on > time.time()

    def check_a_workload_identity_gets_a_token(self):
        file = pathlib.Path(self.directory.name) / "token"
        file.write_text("header.claims.signature")
        credential = WorkloadIdentityCredential(
            tenant_id=TENANT,
            client_id=CLIENT,
            token_file_path=str(file),
            authority=self.simulator.authority,
            disable_instance_discovery=True,
            **self.trust,
        )
        assert credential.get_token(SCOPE).token.endswith(CLIENT)

    def check_a_managed_identity_of_a_vm_gets_a_token(self):
        with environment(AZURE_POD_IDENTITY_AUTHORITY_HOST=self.simulator.endpoint):
            credential = ManagedIdentityCredential(client_id=CLIENT, **self.trust)
            assert credential.get_token(SCOPE).token.endswith(CLIENT)

    def check_a_managed_identity_of_app_service_gets_a_token(self):
        with environment(IDENTITY_ENDPOINT=f"{self.simulator.endpoint}/msi/token", IDENTITY_HEADER="x"):
            credential = ManagedIdentityCredential(client_id=CLIENT, **self.trust)
            assert credential.get_token(SCOPE).token.endswith(CLIENT)

    def check_an_expired_token_is_an_authentication_error(self):
        compute = self.client(ComputeManagementClient, StaticToken("sim.1.somebody"))
        error = raised(ClientAuthenticationError, lambda: list(compute.virtual_machines.list(GROUP)))
        assert error.status_code == 401, error.status_code
        assert error.error.code == "ExpiredAuthenticationToken", error.error.code

    def check_a_vm_that_does_not_exist_is_not_found(self):
        error = raised(ResourceNotFoundError, lambda: self.compute.virtual_machines.get(GROUP, "nobody"))
        assert error.error.code in ("ResourceNotFound", "NotFound"), error.error.code

    def check_a_nic_is_created_with_an_address(self):
        nic = self.put_nic("nic-a")
        assert nic.provisioning_state == "Succeeded", nic.provisioning_state
        assert nic.ip_configurations[0].private_ip_address.startswith("10.1.0."), nic.ip_configurations
        assert self.network.network_interfaces.get(GROUP, "nic-a").id == nic.id

    def check_a_vm_is_created_and_its_operation_is_followed(self):
        nic = self.network.network_interfaces.get(GROUP, "nic-a")
        poller = self.begin_vm("vm-a", nic, version="202601.27.0")
        assert poller.status() == "InProgress", poller.status()
        self.simulator.advance("10m")
        vm = poller.result()
        assert vm.provisioning_state == "Succeeded", vm.provisioning_state
        assert vm.vm_id
        assert vm.os_profile.custom_data is None, "customData must not come back"
        nic = self.network.network_interfaces.get(GROUP, "nic-a")
        assert nic.virtual_machine.id.lower() == vm.id.lower()

    def check_the_instance_view_shows_a_running_vm_with_its_agent(self):
        view = self.compute.virtual_machines.instance_view(GROUP, "vm-a")
        assert "PowerState/running" in codes(view.statuses), codes(view.statuses)
        assert "ProvisioningState/succeeded" in codes(view.vm_agent.statuses), codes(view.vm_agent.statuses)
        expanded = self.compute.virtual_machines.get(GROUP, "vm-a", expand="instanceView")
        assert codes(expanded.instance_view.statuses) == codes(view.statuses)

    def check_a_failing_custom_script_raises_its_error(self):
        body = bodies.extension()
        extensions = self.compute.virtual_machine_extensions
        poller = extensions.begin_create_or_update(GROUP, "vm-a", "cse", body, **POLL)
        self.simulator.advance("10m")
        error = raised(HttpResponseError, poller.result)
        assert error.error.code == "VMExtensionProvisioningError", error.error.code
        assert "211" in error.message and "'cse'" in error.message, error.message

    def check_the_instance_view_shows_the_failed_extension(self):
        view = self.compute.virtual_machines.instance_view(GROUP, "vm-a")
        extension = next(extension for extension in view.extensions if extension.name == "cse")
        status = extension.statuses[0]
        assert status.code.startswith("ProvisioningState/failed"), status.code
        assert status.level == "Error", status.level
        assert "oras: command not found" in status.message, status.message
        model = self.compute.virtual_machine_extensions.get(GROUP, "vm-a", "cse")
        assert model.provisioning_state == "Failed", model.provisioning_state
        assert model.protected_settings is None, "protectedSettings must not come back"
        vm = self.compute.virtual_machines.get(GROUP, "vm-a")
        assert vm.provisioning_state == "Failed", vm.provisioning_state

    def check_a_command_runs_on_the_vm(self):
        command = {"commandId": "RunShellScript", "script": ["cat /var/log/azure/aks/provision.json"]}
        poller = self.compute.virtual_machines.begin_run_command(GROUP, "vm-a", command, **POLL)
        self.simulator.advance("5m")
        said = poller.result().value[0]
        assert said.code == "ProvisioningState/succeeded", said.code
        assert "[stdout]" in said.message and "[stderr]" in said.message, said.message

    def check_limits_and_sizes_are_told(self):
        usages = {usage.name.value: usage for usage in self.compute.usage.list("eastus")}
        family = usages["standardDSv5Family"]
        assert (family.current_value, family.limit) == (2, 8), (family.current_value, family.limit)
        sizes = {sku.name: sku for sku in self.compute.resource_skus.list(filter="location eq 'eastus'")}
        assert sizes["Standard_D2s_v5"].family == "standardDSv5Family", sizes["Standard_D2s_v5"].family

    def check_boot_diagnostics_are_read_in_ranges(self):
        addresses = self.compute.virtual_machines.retrieve_boot_diagnostics_data(GROUP, "vm-a")
        log = addresses.serial_console_log_blob_uri
        status, _, whole = self.simulator.get(log, {})
        assert status == 200 and len(whole) > 100, (status, len(whole))
        status, headers, part = self.simulator.get(log, {"Range": "bytes=10-29"})
        assert status == 206 and part == whole[10:30], (status, part)
        assert headers["Content-Range"] == f"bytes 10-29/{len(whole)}", headers["Content-Range"]
        status, _, _ = self.simulator.get(log, {"Range": f"bytes={len(whole)}-"})
        assert status == 416, status

    def check_the_nic_of_a_vm_cannot_be_deleted(self):
        self.simulator.advance("5m")
        delete = lambda: self.network.network_interfaces.begin_delete(GROUP, "nic-a", **POLL)
        error = raised(HttpResponseError, delete)
        assert answer(error) == (400, "NicInUse"), answer(error)

    def check_a_deleted_vm_takes_its_nic_and_disk_along(self):
        disk = self.compute.virtual_machines.get(GROUP, "vm-a").storage_profile.os_disk.name
        poller = self.compute.virtual_machines.begin_delete(GROUP, "vm-a", force_deletion=True, **POLL)
        self.simulator.advance("10m")
        poller.result()
        raised(ResourceNotFoundError, lambda: self.compute.virtual_machines.get(GROUP, "vm-a"))
        raised(ResourceNotFoundError, lambda: self.network.network_interfaces.get(GROUP, "nic-a"))
        raised(ResourceNotFoundError, lambda: self.compute.disks.get(GROUP, disk))

    def check_a_vm_beyond_the_quota_is_refused(self):
        nic = self.put_nic("nic-b")
        error = raised(HttpResponseError, lambda: self.begin_vm("vm-b", nic, size="Standard_D16s_v5"))
        assert answer(error) == (409, "OperationNotAllowed"), answer(error)
        family = "exceeding approved standardDSv5Family Cores quota"
        for part in (family, "Current Limit: 8", "Additional Required: 16"):
            assert part in error.message, error.message

    def check_a_nic_stays_reserved_for_180_seconds_after_the_refusal(self):
        delete = lambda: self.network.network_interfaces.begin_delete(GROUP, "nic-b", **POLL)
        error = raised(HttpResponseError, delete)
        assert answer(error) == (400, "NicReservedForAnotherVm"), answer(error)
        self.simulator.advance("179s")
        assert raised(HttpResponseError, delete).error.code == "NicReservedForAnotherVm"
        self.simulator.advance("2s")
        poller = delete()
        self.simulator.advance("1m")
        poller.result()
        raised(ResourceNotFoundError, lambda: self.network.network_interfaces.get(GROUP, "nic-b"))

    def check_a_list_is_followed_through_its_pages(self):
        names = {f"nic-list-{number}" for number in range(101)}
        for name in names:
            self.begin_nic(name, polling=False)
        self.simulator.advance("5m")
        before = self.simulator.count("ListNics")
        assert {nic.name for nic in self.network.network_interfaces.list(GROUP)} == names
        assert self.simulator.count("ListNics") - before == 2, "101 NICs are more than a page"
        assert {nic.name for nic in self.network.network_interfaces.list_all()} == names
        for name in names:
            self.network.network_interfaces.begin_delete(GROUP, name, polling=False)
        self.simulator.advance("5m")
        assert not list(self.network.network_interfaces.list(GROUP))

    def check_a_scale_set_fails_with_the_extension_of_its_instances(self):
        body = bodies.scale_set("set-a", "Standard_D2s_v5", 2, "202601.27.0")
        poller = self.compute.virtual_machine_scale_sets.begin_create_or_update(GROUP, "set-a", body, **POLL)
        self.simulator.advance("20m")
        error = raised(HttpResponseError, poller.result)
        assert error.error.code == "VMExtensionProvisioningError", error.error.code
        instances = self.compute.virtual_machine_scale_set_vms
        names = [instance.instance_id for instance in instances.list(GROUP, "set-a")]
        assert len(names) == 2, names
        for name in names:
            view = instances.get_instance_view(GROUP, "set-a", name)
            assert "oras: command not found" in view.extensions[0].statuses[0].message

    def check_a_deleted_scale_set_takes_everything_along(self):
        poller = self.compute.virtual_machine_scale_sets.begin_delete(GROUP, "set-a", **POLL)
        self.simulator.advance("10m")
        poller.result()
        raised(ResourceNotFoundError, lambda: self.compute.virtual_machine_scale_sets.get(GROUP, "set-a"))
        left = [resource["id"] for resource in self.simulator.ask("GET", "/leaks")]
        assert not left, left

    def check_too_many_requests_are_repeated_after_the_time_they_were_told(self):
        fault = {
            "on": {"method": "GET", "pathContains": "/virtualMachines/patient", "times": 2},
            "fault": {"throttle": {"retryAfter": 1, "policy": "LowCostGetResource"}},
        }
        self.simulator.ask("POST", "/faults", fault)
        before, began = self.simulator.count("GetVm"), time.monotonic()
        raised(ResourceNotFoundError, lambda: self.compute.virtual_machines.get(GROUP, "patient"))
        assert self.simulator.count("GetVm") - before == 3, self.simulator.count("GetVm") - before
        assert time.monotonic() - began >= 2, "the SDK did not wait as long as Retry-After says"

    def check_one_vm_read_too_often_in_a_minute_is_too_many_requests(self):
        impatient = self.client(ComputeManagementClient, self.credential, retry_total=0)
        for _ in range(36):
            raised(ResourceNotFoundError, lambda: impatient.virtual_machines.get(GROUP, "popular"))
        error = raised(HttpResponseError, lambda: impatient.virtual_machines.get(GROUP, "popular"))
        assert error.status_code == 429, error.status_code
        assert int(error.response.headers["Retry-After"]) > 0
        assert "TooManyRequests" in error.response.text(), error.response.text()
        self.simulator.advance("1m")
        raised(ResourceNotFoundError, lambda: impatient.virtual_machines.get(GROUP, "popular"))

    def check_nothing_is_left_at_the_end(self):
        code, said = self.simulator.end()
        assert code == 0, code
        assert said["leaked"] == [], said["leaked"]


class environment:
    """Sets environment variables inside a `with` block."""

    def __init__(self, **variables):
        self.variables = variables

    def __enter__(self):
        os.environ.update(self.variables)

    def __exit__(self, *_):
        for name in self.variables:
            del os.environ[name]


def raised(kind, call):
    """The error of this kind that the call raises."""
    try:
        result = call()
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, got {result!r}")


def answer(error):
    return error.status_code, error.error.code


def codes(statuses):
    return [status.code for status in statuses]


def main():
    run = Run(sys.argv[1])
    checks = [name for name in vars(Run) if name.startswith("check_")]
    failed = 0
    for name in checks:
        sentence = name.removeprefix("check_").replace("_", " ")
        try:
            getattr(run, name)()
            print(f"ok    {sentence}", flush=True)
        except Exception as error:  # one failed check must not hide the others
            failed += 1
            place = traceback.extract_tb(error.__traceback__)[-1]
            what = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"FAIL  {sentence} (line {place.lineno}): {what[:500]}", flush=True)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
