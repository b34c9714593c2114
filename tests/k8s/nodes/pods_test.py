"""What a job on real pods survives: each time its rows are counted and its model's bits compared."""
import api
from cluster import until
from jobs_on_nodes import JobsOnNodes
from training import EPOCHS, Training, last_job, pace, trees


class PodsOnNodes(JobsOnNodes):
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
        self.assertIn(f"job {job.job} goes on: WAIT JOB {job.job}", self.client.communicate(timeout=180)[0])
        self.expect_exact(job)
        self.cluster.wait_for_gateway()

    def test_the_only_server_is_deleted_and_then_killed(self):
        """With its grace period others get what only it has; without, the job begins again, once."""
        job = self.begin("onlyserver", more="engine.num_workers=2, engine.max_workers=2, engine.num_ps=1")
        job.reached(2)
        self.cluster.ours("delete", "pod", job.pods("ps")[0][0], "--wait=false")
        job.happened("partitions_moved")
        self.assertEqual((job.count("server_leaves"), job.count("training_begins_again")), (1, 0), job.story())
        job.reached(job.count("epoch_done") + 1)
        self.end_pod(job.pods("ps")[0][0])
        job.happened("training_begins_again")
        self.expect_exact(job)

    def test_a_nodes_power_is_cut(self):
        """That of its master, while the gateway is elsewhere."""
        gateway = self.cluster.gateways()[0]["spec"]["nodeName"]
        nodes = self.cluster.nodes()
        other = next(node for node in nodes if node != gateway)
        rest = [node for node in nodes if node != other]
        self.cluster.kubectl("cordon", *rest)  # the first master goes to the other node
        job = self.begin("cut")
        until(lambda: [node for _, node in job.pods("master") if node], 180, "its master is placed", pause=0.02)
        self.cluster.kubectl("uncordon", *rest)
        job.reached(1)
        servers = [name for name, node in job.pods("ps") if node == other]
        if len(servers) == len(job.pods("ps")):  # else the only copies of all parameters went with the node
            self.cluster.kubectl("cordon", other)
            self.end_pod(servers[0])
            job.happened("server_lost")
            until(lambda: [said for _, _, said in job.events("pod_started")
                           if "-ps-" in said and said.split(" on ")[1] in rest], 180, "a server runs elsewhere")
            self.cluster.kubectl("uncordon", other)
        job.reached(job.count("epoch_done") + 2)
        self.assertEqual([node for _, node in job.pods("master")], [other])
        self.cluster.kubernetes("cut", other[-1])
        try:
            job.happened("master_started", 2)
            pace(self.cluster, 0)
            job.ended()
        finally:
            self.bring_back(other[-1])  # until then nobody can say that its pods have ended
        self.expect_exact(job)

    def test_each_node_is_drained_in_turn(self):
        self.addCleanup(self.cluster.kubectl, "uncordon", *self.cluster.nodes())
        job = self.begin("drained")
        drains = []
        for node in self.cluster.nodes():
            before = job.count("epoch_done")
            job.reached(before + 2)
            drains.append(self.cluster.drain(node))
            until(lambda: node not in [where for _, where in job.pods()], 300, lambda: f"no pod on {node}: {job.story()}")
            before = job.count("epoch_done")
            job.reached(before + 1)
            self.cluster.kubectl("uncordon", node)
        self.expect_exact(job)
        self.assertEqual(job.count("rolled_back"), 0, "one server at a time" + job.story())
        self.assertEqual(job.count("snapshot_lost"), 0, "a master stays until the next one keeps it" + job.story())
        for drain in drains:  # they wait until the API server has forgotten the pods, which takes up to a minute
            said = drain.communicate(timeout=450)[0]
            self.assertEqual(drain.returncode, 0, said)

    def test_trees_are_one_model_whichever_pods_go(self):
        self.expect(EPOCHS)  # makes the table
        self.cluster.sql(trees("alone", "engine.strategy='local'"))
        self.sha, self.rows = self.cluster.database.run(
            "SELECT v.weights_sha256, j.rows_trained FROM sluice.model_versions v JOIN sluice.jobs j ON j.id = v.job "
            "WHERE v.name = 'alone'")[0]
        self.rows = int(self.rows)
        after = last_job(self.cluster)
        self.client = self.cluster.client(trees("grove", "engine.num_workers=2, engine.max_workers=2, engine.cpu=0.1"))
        self.addCleanup(self.client.kill)
        job = Training(self.cluster, "grove", after, self.client)
        job.happened("worker_started", 2)
        self.end_pod(job.pods("worker")[0][0])
        job.happened("worker_lost")
        self.end_pod(job.pods("master")[0][0])
        job.happened("training_goes_on")
        self.end_pod(job.pods("worker")[0][0])
        self.expect_exact(job)

    def test_a_service_comes_first(self):
        job = self.begin("preempted", cpu=0.5, more="engine.num_workers=5, engine.min_workers=1, "
                         "engine.max_workers=5, engine.num_ps=2, engine.ps_resource_request='cpu=100m'")
        job.reached(1)
        self.start_service("web", 1500)
        self.expect_exact(job)

    def start_service(self, name, millis, replicas=1):
        container = {"name": "web", "image": "sluice.test/tools:1", "imagePullPolicy": "Never",
                     "resources": {"requests": {"cpu": f"{millis}m"}}}
        labels = {"app": name}
        self.addCleanup(until, lambda: not self.cluster.objects("pods", f"app={name}"), 300, f"{name} is gone")
        self.addCleanup(self.cluster.ours, "delete", "deployment", name)
        self.cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
                            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                                     "template": {"metadata": {"labels": labels},
                                                  "spec": {"terminationGracePeriodSeconds": 1,
                                                           "containers": [container]}}}})
        self.cluster.ours("rollout", "status", f"deployment/{name}", "--timeout=180s")

    def test_the_api_server_is_restarted(self):
        job = self.begin("restarted")
        job.reached(3)
        self.cluster.kubernetes("restart")
        self.end_pod(job.pods("worker")[0][0])
        self.expect_exact(job)

    def test_the_masters_connections_fall_silent(self):
        """Those of its calls, its Lease's among them, and its watches."""
        job = self.begin_endless("deaf")
        job.reached(1)
        master = job.pods("master")[0][0]
        pod = self.cluster.object("pods", master)
        self.assertGreaterEqual(api.silence_connections(api.processes(pod)[0]), 3, "two watches and its calls")
        self.cluster.ours("scale", f"tj/{master.rsplit('-master-', 1)[0]}", "--replicas=3")
        self.end_pod(job.pods("worker")[0][0])
        until(lambda: len(job.pods("worker")) == 3, 180, lambda: f"a third worker: {job.story()}")
        job.happened("worker_started", 4, 180)
        self.assertEqual(job.count("master_took_over"), 0, job.story())
        self.cluster.sql(f"CANCEL JOB {job.job}")
        self.assertEqual(job.ended(180), "CANCELLED", job.story())
