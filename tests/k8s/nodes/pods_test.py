"""What a job on real pods survives: each time its rows are counted and its model's bits compared."""
import unittest

import site_of_tests as site
import training
from cluster import NAMESPACE, until
from training import EPOCHS, Training, statement

LONG = 60  # epochs of a job that has to outlive slow machinery


class PodsOnNodes(unittest.TestCase):
    cluster = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = site.cluster
        training.undisturbed(cls.cluster, EPOCHS)

    def begin(self, model, epochs=EPOCHS, **options):
        self.sha, self.rows = training.undisturbed(self.cluster, epochs)
        after = training.last_job(self.cluster)
        self.client = self.cluster.client(statement(model, epochs, **options))
        self.addCleanup(self.client.kill)
        return Training(self.cluster, model, after)

    def expect_exact(self, job):
        """It succeeded; no row was lost, none trained twice; the same bits as undisturbed."""
        self.assertEqual(job.ended(), "SUCCEEDED", job.story())
        self.assertEqual(job.rows, self.rows, job.story())
        self.assertEqual(job.sha, self.sha, job.story())
        for kind in ("pod", "service", "secret"):
            # A node that has just come back takes a while to say that its pods have ended.
            until(lambda: not self.left(kind, job), 120, f"no {kind} of {job.model} is left")

    def left(self, kind, job):
        return [each for each in self.cluster.objects(kind, "training.sluice/job")
                if each["metadata"]["name"].startswith(f"job{job.job}-")]

    def end_pod(self, name, grace=0):
        how = ["--force"] if grace == 0 else []
        self.cluster.ours("delete", "pod", name, f"--grace-period={grace}", "--wait=false", *how)

    def test_master_worker_server_and_gateway_are_killed(self):
        job = self.begin("killed")
        job.reached(3)
        self.end_pod(job.pods("master")[0][0])
        job.happened("master_took_over")
        before = job.count("epoch_done")
        job.reached(before + 2)
        self.end_pod(job.pods("worker")[0][0])
        job.happened("worker_lost")
        self.end_pod(job.pods("ps")[0][0])
        job.happened("server_lost")
        self.end_pod(self.cluster.gateway_pod()[0])
        self.assertIn(f"job {job.job} goes on: WAIT JOB {job.job}", self.client.communicate(timeout=60)[0])
        self.expect_exact(job)
        self.cluster.wait_for_gateway()

    def test_a_nodes_power_is_cut(self):
        """That of its master, while the gateway is elsewhere."""
        gateway = self.cluster.gateways()[0]["spec"]["nodeName"]
        other = {"node1": "node2", "node2": "node1"}[gateway]
        self.cluster.kubectl("cordon", gateway)  # the first master goes to the other node
        job = self.begin("cut")
        until(lambda: [node for _, node in job.pods("master") if node], 60, "its master is placed", pause=0.02)
        self.cluster.kubectl("uncordon", gateway)
        job.reached(3)
        self.assertEqual([node for _, node in job.pods("master")], [other])
        self.cluster.kubernetes("cut", other[-1])
        try:
            job.ended()
        finally:
            self.bring_back(other[-1])  # until then nobody can say that its pods have ended
        self.expect_exact(job)

    def bring_back(self, node):
        self.cluster.kubernetes("add", node)
        until(lambda: " Ready " in self.cluster.kubectl("get", "node", f"node{node}", "--no-headers"), 60,
              f"node{node} is ready")

    def test_each_node_is_drained_in_turn(self):
        job = self.begin("drained", LONG)
        drains = []
        for node in ("node1", "node2"):
            before = job.count("epoch_done")
            job.reached(before + 2)
            drains.append(self.cluster.drain(node))
            until(lambda: node not in [where for _, where in job.pods()], 120, f"no pod on {node}: {job.story()}")
            before = job.count("epoch_done")  # it may have to start over: every holder of its snapshot went at once
            job.reached(before + 1)
            self.cluster.kubectl("uncordon", node)
        self.expect_exact(job)
        self.assertEqual(job.count("rolled_back"), 0, "one server at a time")
        for drain in drains:  # they wait until the API server has forgotten the pods, which takes up to a minute
            said = drain.communicate(timeout=180)[0]
            self.assertEqual(drain.returncode, 0, said)

    def test_a_service_comes_first(self):
        job = self.begin("preempted", cpu=0.5, more="engine.num_workers=5, engine.min_workers=1, "
                         "engine.max_workers=5, engine.num_ps=2, engine.ps_resource_request='cpu=100m'")
        job.reached(1)
        self.start_service("web", 1500)
        self.expect_exact(job)
        self.cluster.ours("delete", "deployment", "web")

    def start_service(self, name, millis, replicas=1):
        container = {"name": "web", "image": "sluice.test/tools:1", "imagePullPolicy": "Never",
                     "resources": {"requests": {"cpu": f"{millis}m"}}}
        labels = {"app": name}
        self.cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
                            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                                     "template": {"metadata": {"labels": labels},
                                                  "spec": {"terminationGracePeriodSeconds": 1,
                                                           "containers": [container]}}}})
        self.cluster.ours("rollout", "status", f"deployment/{name}", "--timeout=60s")

    def test_the_api_server_is_restarted(self):
        job = self.begin("restarted", LONG)
        job.reached(3)
        self.cluster.kubernetes("restart")
        self.end_pod(job.pods("worker")[0][0])
        self.expect_exact(job)

