"""Starts the simulator for the conformance run, and sends requests to it."""

import json
import ssl
import subprocess
import urllib.error
import urllib.request


class Simulator:
    """A running bringup-azure-sim on a manual clock. It ends with this process."""

    def __init__(self, program, scenario):
        self.process = subprocess.Popen(
            [program, "--scenario", scenario, "--clock", "manual", "--output", "json", "--exit-with-stdin"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"conformance: {program} did not start (exit code {self.process.wait()})")
        welcome = json.loads(line)
        self.endpoint = welcome["endpoint"]
        self.authority = welcome["tokenAuthority"]
        self.ca_file = welcome["caFile"]
        self.control = welcome["control"]

    def ask(self, method, path, body=None):
        """One request to the control endpoint."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.control + path, data=data, method=method)
        with urllib.request.urlopen(request) as response:
            text = response.read()
        return json.loads(text) if text else None

    def advance(self, span):
        self.ask("POST", "/clock", {"advance": span})

    def count(self, operation):
        """The number of requests of one kind so far."""
        return self.ask("GET", "/counts").get(operation, 0)

    def get(self, address, headers):
        """One GET without a token, as for a blob. Returns status, headers and body."""
        request = urllib.request.Request(address, headers=headers)
        trusting = ssl.create_default_context(cafile=self.ca_file)
        try:
            with urllib.request.urlopen(request, context=trusting) as response:
                return response.status, response.headers, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def end(self):
        """Ends the simulator. Returns its exit code and its report about leaks."""
        self.process.stdin.close()
        text = self.process.stdout.read()
        return self.process.wait(), json.loads(text)
