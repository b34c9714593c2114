"""The API server without kubectl, where milliseconds count; and the processes of pods, as this machine sees them."""
import glob
import http.client
import json
import os
import re
import ssl
import subprocess
import threading
import time

NAMESPACE = "sluice"
CONFIG = os.environ.get("SLUICE_CLUSTER", "/var/tmp/sluice-cluster") + "/kubeconfig"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
GROUPS = {"deployments": "apps/v1", "trainingjobs": "training.sluice/v1alpha1"}


def connect():
    folder = os.path.dirname(CONFIG)
    trust = ssl.create_default_context(cafile=f"{folder}/ca.crt")
    trust.load_cert_chain(f"{folder}/admin.crt", f"{folder}/admin.key")
    return http.client.HTTPSConnection("10.250.0.100", 6443, context=trust, timeout=60)


kept = threading.local()  # each thread's connection


def get(path):
    """What is at that path; an API server that has been restarted is asked again for ten seconds."""
    end = time.monotonic() + 10
    while True:
        try:
            if "connection" not in vars(kept):
                kept.connection = connect()
            kept.connection.request("GET", path)
            answer = kept.connection.getresponse()
            said = answer.read()
            if answer.status == 200:
                return json.loads(said)
            failure = RuntimeError(f"GET {path}: {answer.status} {said.decode()}")
        except (http.client.HTTPException, OSError) as error:
            vars(kept).pop("connection", None)
            failure = error
        if time.monotonic() > end or isinstance(failure, RuntimeError) and answer.status == 404:
            raise failure
        time.sleep(0.2)


def path_of(kind, namespace):
    """Of all objects of a kind, by the kind's plural."""
    group = f"apis/{GROUPS[kind]}" if kind in GROUPS else "api/v1"
    return f"/{group}/{kind}" if kind == "nodes" else f"/{group}/namespaces/{namespace}/{kind}"


def kill_pods(names):
    """Forgets these pods at once, on one connection; the time of the last answer."""
    connection = connect()
    for name in names:
        connection.request("DELETE", f"{PODS}/{name}", '{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}',
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, f"{name}: {answer.status}"
    connection.close()
    return time.time()


class CreatedPods:
    """When each pod of this selector was created, from now on: {name: time}."""

    def __init__(self, selector):
        self._connection = connect()
        self.times = {}
        self._connection.request("GET", f"{PODS}?labelSelector={selector}")
        version = json.load(self._connection.getresponse())["metadata"]["resourceVersion"]
        self._connection.request("GET", f"{PODS}?labelSelector={selector}&watch=1&resourceVersion={version}"
                                        "&timeoutSeconds=300")
        self._stream = self._connection.getresponse()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self):
        for line in self._stream:
            event = json.loads(line)
            if event["type"] == "ADDED":
                self.times[event["object"]["metadata"]["name"]] = time.time()


def processes(pod):
    """The ids of that pod's processes of ours."""
    uid, found = pod["metadata"]["uid"], []
    for path in glob.glob("/proc/[0-9]*/cgroup"):
        try:
            with open(path) as groups, open(os.path.dirname(path) + "/comm") as name:
                if name.read().strip() == "sluice" and uid in groups.read():
                    found.append(int(path.split("/")[2]))
        except (FileNotFoundError, ProcessLookupError):
            pass  # it ended meanwhile
    return found


def in_network_of(pid, *command):
    return subprocess.run(["nsenter", "-t", str(pid), "-n", *command], capture_output=True, text=True,
                          check=True).stdout


def silence_connections(pid):
    """From now on nothing passes on the connections that this pod has to the API server, as in a proxy that has lost
    its far end; the number of them."""
    said = in_network_of(pid, "ss", "-HtnO", "state", "established", "dport", "=", ":443")
    ports = [re.search(r":(\d+) ", line)[1] for line in said.splitlines()]
    for port in ports:
        in_network_of(pid, "iptables", "-A", "INPUT", "-p", "tcp", "--dport", port, "-j", "DROP")
        in_network_of(pid, "iptables", "-A", "OUTPUT", "-p", "tcp", "--sport", port, "-j", "DROP")
    return len(ports)


def runs(pid):
    """Not ended, reaped or not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
