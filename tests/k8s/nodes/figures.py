"""How long a job on real nodes takes for what happens to it, beside the goals: `run figures`. Not one of the tests."""
import os
import signal
import time
import unittest

import api
import site_of_tests as site
import training
from cluster import until
from training import Training, statement


class Figures(unittest.TestCase):
    measured = []  # (what, [seconds], goal or None), in the order of their first measurement

    @classmethod
    def tearDownClass(cls):
        print("\n| | seconds | goal |\n|---|---|---|")
        for what, seconds, goal in cls.measured:
            said = ", ".join(f"{each:.1f}" for each in seconds)
            print(f"| {what} | {said} | {'' if goal is None else goal} |")
        missed = [what for what, seconds, goal in cls.measured if goal is not None and max(seconds) > goal]
        print(f"goals missed: {'; '.join(missed) or 'none'}", flush=True)

    def setUp(self):
        self.cluster = site.cluster
        training.undisturbed(self.cluster, training.EPOCHS)

    def begin(self, model, epochs, more, cpu=0.1):
        after = training.last_job(self.cluster)
        self.asked = time.time()
        self.client = self.cluster.client(statement(model, epochs, more, cpu))
        self.addCleanup(self.client.kill)
        return Training(self.cluster, model, after)

    def say(self, what, seconds, goal=None):
        for known, values, _ in self.measured:
            if known == what:
                values.append(seconds)
                break
        else:
            self.measured.append((what, [seconds], goal))
        print(f"\n{what}: {seconds:.2f} s{'' if goal is None else f' (goal {goal})'}", flush=True)

    def first(self, job, kind, since, seconds=60):
        """Seconds from then until the first such event."""
        def later():
            return [at for at, _, _ in job.events(kind) if at >= since]
        return until(later, seconds, lambda: kind + job.story())[0] - since

    def pods_of(self, job, role=""):
        names = {name for name, _ in job.pods(role)}
        return [pod for pod in self.cluster.objects("pods", "training.sluice/job") if pod["metadata"]["name"] in names]

    def test_1_a_statement(self):
        for i in range(3):
            job = self.begin(f"figure1{i}", 10, "engine.num_workers=2, engine.max_workers=2, engine.num_ps=2")
            job.happened("worker_started")
            self.say("statement to the first worker that asks for rows",
                     job.events("worker_started")[0][0] - self.asked, 5)
            ids = [pid for pod in self.pods_of(job) for pid in api.processes(pod)]
            self.assertGreaterEqual(len(ids), 4, "master, two servers, a worker")
            job.ended()
            report = float(self.cluster.database.value(
                f"SELECT finished_micros / 1e6 FROM sluice.jobs WHERE id = {job.job}"))
            until(lambda: not any(map(api.runs, ids)), 60, "no process runs", pause=0.01)
            self.say("last report to the end of every process", time.time() - report, 2)
            until(lambda: not [pod for pod in self.cluster.objects("pods", "training.sluice/job")
                               if pod["metadata"]["name"].startswith(f"job{job.job}-")], 60, "gone")
            self.say("last report to the API server having forgotten the pods", time.time() - report)

    def test_2_losses(self):
        job = self.begin("figure2", 4000, "engine.num_workers=2, engine.max_workers=2, engine.num_ps=2")
        job.reached(2)
        for _ in range(3):
            since = time.time()
            api.kill_pods([job.pods("worker")[0][0]])
            self.say("worker killed to its rows given to others", self.first(job, "worker_lost", since), 1)
            self.say("worker killed to its replacement at work", self.first(job, "worker_started", since))
            since = time.time()
            api.kill_pods([job.pods("ps")[0][0]])
            self.say("server killed to its partitions served by others", self.first(job, "server_lost", since), 2)
            self.first(job, "partitions_moved", since)
            since = time.time()
            api.kill_pods([job.pods("master")[0][0]])
            self.say("master deleted to the next one at work", self.first(job, "master_took_over", since), 5)
            before = job.count("epoch_done")
            job.reached(before + 1)
            self.say("master deleted to the end of the next epoch", time.time() - since)
            self.assertGreater(job.count("task_requeued"), 0, "in the same step")
            self.assertEqual(job.count("worker_lost"), job.count("worker_started") - 2, job.story())
        self.cluster.sql(f"CANCEL JOB {job.job}")
        job.ended(30)

    def test_3_sigterm(self):
        job = self.begin("figure3", 4000, "engine.num_workers=2, engine.max_workers=2, engine.num_ps=2")
        job.reached(2)
        for role in ("worker", "ps", "master"):
            for _ in range(3):
                before = job.count("epoch_done")
                job.reached(before + 1)
                pid = until(lambda: [each for pod in self.pods_of(job, role) for each in api.processes(pod)],
                            60, f"a {role} runs")[0]
                since = time.time()
                os.kill(pid, signal.SIGTERM)
                until(lambda: not api.runs(pid), 30, f"the {role} ends", pause=0.01)
                self.say(f"SIGTERM to a {role} to its exit", time.time() - since, 2)
                if role == "master":
                    self.say("SIGTERM to a master to the next one at work", self.first(job, "master_took_over", since))
                else:
                    self.first(job, "worker_started" if role == "worker" else "partitions_moved", since)
        self.cluster.sql(f"CANCEL JOB {job.job}")
        job.ended(30)

    def test_4_thirty_workers_at_once(self):
        job = self.begin("figure4", 4000, "engine.num_workers=32, engine.max_workers=32, engine.num_ps=2, "
                         "engine.ps_resource_request='cpu=50m', engine.worker_resource_request='cpu=50m,memory=64Mi'",
                         cpu=None)
        until(lambda: job.count("worker_started") >= 32, 300, lambda: "32 workers" + job.story())
        names = sorted(name for name, _ in job.pods("worker"))
        created = api.CreatedPods("training.sluice/role=worker")
        begun = time.time()
        since = api.kill_pods(names[:30])
        print(f"30 of 32 workers deleted within {since - begun:.2f} s")
        until(lambda: len(created.times) >= 30, 120, "30 new ones", pause=0.01)
        self.say("30 of 32 workers deleted: all created by", sorted(created.times.values())[29] - since, 2)
        until(lambda: job.count("worker_started") >= 62, 300, lambda: "all at work" + job.story())
        self.say("30 of 32 workers deleted: all at work by", time.time() - since)
        self.cluster.sql(f"CANCEL JOB {job.job}")
        job.ended(60)

    def test_5_a_nodes_power_is_cut(self):
        """A node with a worker, without the gateway: without the job's master, then the master's."""
        gateway = self.cluster.gateways()[0]["spec"]["nodeName"]
        job = self.begin("figure5", 8000, "engine.num_workers=6, engine.max_workers=6, engine.num_ps=2")
        for of_master in (False, True):
            before = job.count("epoch_done")
            job.reached(before + 2)
            master = job.pods("master")[0][1]
            others = sorted({node for _, node in job.pods("worker")} - {gateway})
            node = next((each for each in others if (each == master) == of_master), others[0])
            whose = "the master's" if node == master else "another"
            since = time.time()
            self.cluster.kubernetes("cut", node[-1])
            if node == master:
                self.say("power of the master's node cut to the next one at work",
                         self.first(job, "master_started", since), 15)
                if [at for at, _, _ in job.events("master_took_over") if at >= since]:  # else the job starts over
                    self.say("power of the master's node cut to its workers' rows given to others",
                             self.first(job, "worker_lost", since), 10)
            else:
                self.say("power of another node cut to its workers' rows given to others",
                         self.first(job, "worker_lost", since), 10)
            self.say(f"power of {whose} node cut to the first new worker at work",
                     self.first(job, "worker_started", since), 15)
            self.cluster.kubernetes("add", node[-1])
            until(lambda: self.cluster.is_ready(node), 60, f"{node} is ready")
            before = job.count("epoch_done")
            job.reached(before + 2)
        self.cluster.sql(f"CANCEL JOB {job.job}")
        job.ended(60)
