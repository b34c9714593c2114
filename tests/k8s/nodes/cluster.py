"""Nodes, Sluice's image and its gateway, installed as docs/kubernetes.md says."""
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.parse

import api
from api import CONFIG, NAMESPACE
from database import PASSWORD, Database

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BINARY = os.environ.get("SLUICE_BINARY", f"{ROOT}/build/release/server/sluice")


def run(*command, check=True, stdin=None, timeout=900, env=None):
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})})
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout if check else done


def until(condition, seconds=180, what="", pause=0.1):
    """The first true answer; fails after so many seconds. `what` is awaited, in words, or a function that then tells."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(pause)


class Cluster:
    config = CONFIG

    def __init__(self, folder, database):
        self.folder, self.database = folder, database
        # One tag for each binary: a kubelet does not look again at one that it knows.
        self.image = f"sluice.test/sluice:nodes-{os.stat(BINARY).st_mtime_ns}"

    @classmethod
    def start(cls, nodes):
        self = cls(tempfile.mkdtemp(prefix="sluice-nodes.", dir="/var/tmp"), None)
        try:
            # A node without power is noticed sooner than by default: the test is about what follows.
            self.kubernetes("up", str(nodes), env={"NODE_GRACE": "10", "NODE_REPORT": "2"})
            self.database = Database.start()
        except KeyboardInterrupt:
            self.close()
            raise
        return self

    def close(self):
        if self.database:
            self.database.close()
        self.kubernetes("down")
        subprocess.run(["rm", "-rf", self.folder], check=True)

    def kubernetes(self, *arguments, env=None):
        """scripts/kubernetes; its daemons must not hold our pipe."""
        with open(f"{self.folder}/kubernetes.log", "a+") as log:
            at = log.tell()
            done = subprocess.run([f"{ROOT}/scripts/kubernetes", *arguments], stdin=subprocess.DEVNULL,
                                  stdout=log, stderr=log, env={**os.environ, **(env or {})})
            log.seek(at)
            if done.returncode != 0:
                raise RuntimeError(f"scripts/kubernetes {' '.join(arguments)}: {log.read()}")

    def pause_api_server(self, seconds):
        """It accepts connections meanwhile, and says nothing."""
        with open(os.path.dirname(self.config) + "/apiserver.pid") as file:
            process = int(file.read())
        os.kill(process, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(process, signal.SIGCONT)

    def kubectl(self, *arguments, check=True, stdin=None, timeout=900):
        return run("kubectl", "--kubeconfig", self.config, *arguments, check=check, stdin=stdin,
                   timeout=timeout)

    def drain(self, node):
        """kubectl drain; Popen."""
        return subprocess.Popen(["kubectl", "--kubeconfig", self.config, "drain", node, "--ignore-daemonsets",
                                 "--delete-emptydir-data", "--force", "--timeout=400s"], text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def ours(self, *arguments, **options):
        """kubectl in the gateway's namespace."""
        return self.kubectl("-n", NAMESPACE, *arguments, **options)

    def objects(self, kind, selector="", namespace=NAMESPACE):
        """Of a kind, by its plural; without kubectl, since tests ask this several times a second."""
        query = f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""
        return api.get(api.path_of(kind, namespace) + query)["items"]

    def object(self, kind, name, namespace=NAMESPACE):
        return api.get(f"{api.path_of(kind, namespace)}/{name}")

    def apply(self, manifest, namespace=NAMESPACE):
        self.kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(manifest))

    def install(self):
        """The image, the manifests, the Secrets, the gateway."""
        self.import_image()
        self.database.prepare(run(BINARY, "setup", "--source", self.database.url))
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", f"{self.folder}/tls.key", "-out", f"{self.folder}/tls.crt", "-subj", "/CN=gateway",
            "-days", "2")
        self.install_into(NAMESPACE)
        self.wait_for_gateway()

    def import_image(self):
        archive = f"{self.folder}/image.tar"
        run(f"{ROOT}/scripts/image", "--binary", BINARY, "--name", self.image, "--out", archive)
        self.kubernetes("import", archive)

    def renew(self):
        """The binary as it is now."""
        self.import_image()
        self.apply_base(NAMESPACE)
        self.wait_for_gateway()

    def apply_base(self, namespace):
        base = f"{self.folder}/{namespace}"
        run("rm", "-rf", base)
        run(BINARY, "k8s", "manifests", "--without-rules", "--namespace", namespace, "--image", self.image,
            "--pods-allow", "template=elsewhere,template=absent,claim=checkpoints:/checkpoints", "--into", base)
        self.kubectl("apply", "-k", f"{base}/cluster")
        self.kubectl("apply", "-k", f"{base}/gateway")
        self.kubectl("-n", "sluice-system", "scale", "deployment/sluice-controller", "--replicas=0")
        self.kubectl("create", "clusterrolebinding", f"sluice-gateway-{namespace}", "--clusterrole=sluice-gateway",
                     f"--serviceaccount={namespace}:sluice-gateway", check=False)

    def install_into(self, namespace):
        self.apply_base(namespace)
        self.kubectl("-n", namespace, "create", "secret", "generic", "sluice-source",
                     f"--from-literal=source={self.database.url}")
        self.kubectl("-n", namespace, "create", "secret", "generic", "ann-source",
                     f"--from-literal=source={self.database.url_of('ann')}")
        self.kubectl("-n", namespace, "label", "secret", "ann-source", "sluice.dev/source=true")
        self.kubectl("-n", namespace, "create", "secret", "tls", "sluice-gateway-tls",
                     f"--cert={self.folder}/tls.crt", f"--key={self.folder}/tls.key")

    def wait_for_gateway(self, namespace=NAMESPACE):
        self.kubectl("-n", namespace, "rollout", "status", "deployment/sluice-gateway", "--timeout=300s")

    def nodes(self):
        return sorted(node["metadata"]["name"] for node in self.objects("nodes"))

    def is_ready(self, node):
        return self._has(self.object("nodes", node), "Ready")

    @staticmethod
    def _has(subject, condition):
        return any((each["type"], each["status"]) == (condition, "True")
                   for each in subject["status"].get("conditions", []))

    def gateways(self, namespace=NAMESPACE):
        """Those that run and are not ending."""
        return [pod for pod in self.objects("pods", "app.kubernetes.io/component=gateway", namespace)
                if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]]

    def gateway_pod(self, namespace=NAMESPACE):
        """The name and address of one that answers."""
        def ready():
            return [pod for pod in self.gateways(namespace) if self._has(pod, "Ready")]
        pod = until(ready, 300, "a gateway is ready")[0]
        return pod["metadata"]["name"], pod["status"]["podIP"]

    def client(self, *statements, namespace=NAMESPACE):
        """psql at the gateway; Popen."""
        address = self.gateway_pod(namespace)[1]
        command = ["psql", f"host={address} user=ann dbname=db sslmode=require", "-XqAt",
                   "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=default"]
        for statement in statements:
            command += ["-c", statement]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                stdin=subprocess.DEVNULL, env={**os.environ, "PGPASSWORD": PASSWORD})

    def sql(self, *statements, namespace=NAMESPACE, timeout=900):
        """What psql says, whether or not it fails."""
        return self.client(*statements, namespace=namespace).communicate(timeout=timeout)[0]

    def pods(self, job, role=""):
        """Pods of that job that have not ended: (name, node), running ones first."""
        selector = "training.sluice/role" + (f"={role}" if role else "")
        found = [(pod["status"]["phase"] != "Running", pod["metadata"]["name"], pod["spec"].get("nodeName", ""))
                 for pod in self.objects("pods", selector)
                 if pod["metadata"]["name"].startswith(f"job{job}-")
                 and pod["status"]["phase"] in ("Pending", "Running")
                 and "deletionTimestamp" not in pod["metadata"]]
        return [(name, node) for _, name, node in sorted(found)]
