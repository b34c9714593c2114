"""What a TrainingJob or an administrator asks for: other numbers, a template, an end; and what is counted."""
import re
import subprocess
import sys
import urllib.request

import api
from cluster import until
from jobs_on_nodes import TWO, JobsOnNodes
from operator_test import training_job
from training import EPOCHS, SLOW, Training, pace, statement

SERVERS = "engine.num_ps=2"
HOG = """
import sys, time
with open(f"/proc/{sys.argv[1]}/cgroup") as groups:
    group = next(line.strip().split(":", 2)[2] for line in groups if ":memory:" in line)
with open(f"/sys/fs/cgroup/memory{group}/cgroup.procs", "w") as file:
    file.write("0")
held = b"x" * (60 << 20)
time.sleep(600)
"""


class Requests(JobsOnNodes):
    def setUp(self):
        self.expect(EPOCHS)

    def test_a_job_is_scaled_up_and_down(self):
        self.cluster.apply(training_job("scaled", statement("scaled", EPOCHS, SERVERS),
                                        workers={"min": 1, "max": 1}))
        job = Training(self.cluster, "scaled")
        pace(self.cluster, SLOW)
        job.reached(1)
        for workers in (3, 1):
            self.cluster.ours("scale", "tj/scaled", f"--replicas={workers}")
            self.until_in(job, lambda: len(job.pods("worker")) == workers, f"{workers} workers")
        self.expect_exact(job)

    def until_in(self, job, condition, what):
        """While the job trains: one that has ended has no more to wait for."""
        until(lambda: condition() or job.over, 180, lambda: f"{what}: {job.story()}")
        self.assertFalse(job.over, f"over before {what}: {job.story()}")

    def test_an_ended_job_is_deleted_in_time(self):
        self.cluster.apply(training_job("brief", statement("brief", 1, SERVERS),
                                        ttlSecondsAfterFinished=5))
        self.assertEqual(Training(self.cluster, "brief").ended(), "SUCCEEDED")
        self.cluster.ours("wait", "--for=delete", "tj/brief", "--timeout=180s")

    def test_pods_are_made_of_the_administrators_template(self):
        """Its labels and where it wants them; ours win where the protocol needs it."""
        self.cluster.apply({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "elsewhere"},
                            "template": {"metadata": {"labels": {"team": "ads", "training.sluice/role": "none"}},
                                         "spec": {"nodeSelector": {"kubernetes.io/hostname": "node2"},
                                                  "containers": [{"name": "sluice", "image": "absent"}]}}})
        job = self.begin("elsewhere", more=f"{TWO}, engine.template='elsewhere'")
        job.reached(1)
        roles = ["master", "ps", "ps", "worker", "worker"]
        pods = []

        # An epoch may pass before the second worker is there.
        def all_are_there():
            pods[:] = [pod for pod in self.cluster.objects("pods", "team=ads")
                       if pod["metadata"]["name"].startswith(f"job{job.job}-") and "nodeName" in pod["spec"]]
            return sorted(pod["metadata"]["labels"]["training.sluice/role"] for pod in pods) == roles
        self.until_in(job, all_are_there, f"{roles} with that label and a node")
        self.assertEqual({pod["spec"]["nodeName"] for pod in pods}, {"node2"})
        self.expect_exact(job)

    def test_a_template_that_nobody_has_made_is_refused(self):
        said = self.cluster.sql(statement("untemplated", 1, SERVERS + ", engine.template='absent'"))
        self.assertIn("there is no PodTemplate 'absent'", said)

    def test_what_the_operator_has_not_listed_is_refused(self):
        said = self.cluster.sql(statement("unlisted", 1, SERVERS + ", engine.template='spot', "
                                          "engine.volume='claim_name=others,mount_path=/others'"))
        self.assertIn("the PodTemplate 'spot' is not one that statements may use here", said)
        self.assertIn("'others' is not a claim that statements may mount here", said)

    def test_a_worker_that_runs_out_of_memory_gets_more(self):
        job = self.begin("hungry", cpu=None, more=f"{TWO}, engine.ps_resource_request='cpu=50m', "
                         "engine.worker_resource_request='cpu=50m,memory=64Mi', "
                         "engine.worker_resource_limit='memory=64Mi'")
        job.reached(1)
        workers = []

        def one_runs():  # whichever has rows: another may still be on its way to its node
            workers[:] = [pod for pod in map(self.pod, job.pods("worker")) if pod and api.processes(pod)]
            return workers
        self.until_in(job, one_runs, "a worker with processes")
        hog = self.fill_memory_of(workers[0])
        self.until_in(job, lambda: job.count("memory_raised") > 0, "memory_raised")
        hog.kill()
        self.expect_exact(job)
        self.assertIn("WorkerOutOfMemory", {event["reason"] for event in self.cluster.objects("events")})

    def pod(self, name_and_node):
        """None: it is gone already."""
        return next((each for each in self.cluster.objects("pods", "training.sluice/role")
                     if each["metadata"]["name"] == name_and_node[0]), None)

    def fill_memory_of(self, pod):
        """As a leak in the worker would; the kernel prefers to end processes of pods."""
        hog = subprocess.Popen([sys.executable, "-c", HOG, str(api.processes(pod)[0])])
        self.addCleanup(hog.wait)
        self.addCleanup(hog.kill)
        return hog

    def test_gateway_and_master_count_what_they_do(self):
        job = self.begin("counted")
        job.reached(2)
        master = self.cluster.object("pods", job.pods("master")[0][0])["status"]["podIP"]
        # Two epochs may pass before the second worker has its node, and the gateway may still be at the end of
        # the job before this one.
        self.counts(job, master, 7078, r'^sluice_pods\{role="worker",state="placed"\} 2$')
        self.counts(job, master, 7078, r"^sluice_rows_total [1-9]")
        gateway = self.cluster.gateway_pod()[1]
        self.counts(job, gateway, 9090, r"^sluice_jobs_on_pods 1$")
        self.counts(job, gateway, 9090, r"^sluice_kubernetes_calls_total\{")
        self.expect_exact(job)

    def counts(self, job, host, port, line):
        self.until_in(job, lambda: re.search(line, self.metrics(host, port), re.MULTILINE), line)

    @staticmethod
    def metrics(host, port):
        with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=10) as page:
            return page.read().decode()
