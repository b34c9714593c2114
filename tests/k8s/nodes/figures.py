"""Prints how long a job on real nodes takes for what happens to it: `run figures`. Not one of the tests."""
import time
import unittest

import site_of_tests as site
import training
from cluster import until
from training import Training, statement


class Figures(unittest.TestCase):
    def setUp(self):
        self.cluster = site.cluster
        training.undisturbed(self.cluster, training.EPOCHS)

    def begin(self, model, epochs, more, cpu=0.1):
        after = training.last_job(self.cluster)
        self.asked = time.time()
        self.client = self.cluster.client(statement(model, epochs, more, cpu))
        self.addCleanup(self.client.kill)
        return Training(self.cluster, model, after)

    def delete(self, *pods):
        begun = time.time()
        self.cluster.ours("delete", "pod", *pods, "--grace-period=0", "--force", "--wait=false")
        return begun

    @staticmethod
    def say(what, seconds):
        print(f"\n{what}: {seconds:.1f} s", flush=True)

    def first(self, job, kind, since, seconds=60):
        """Seconds from then until the first such event."""
        def later():
            return [at for at, _, _ in job.events(kind) if at >= since]
        return until(later, seconds, kind + job.story())[0] - since

    def test_1_a_statement(self):
        job = self.begin("figure1", 10, "engine.num_workers=2, engine.max_workers=2, engine.num_ps=2")
        job.happened("worker_started")
        self.say("statement to first worker that asks for rows", job.events("worker_started")[0][0] - self.asked)
        job.ended()
        ended = float(self.cluster.database.value(f"SELECT finished_micros / 1e6 FROM sluice.jobs WHERE id = {job.job}"))
        until(lambda: not job.pods(), 60, "no pod runs", pause=0.05)
        self.say("job ended to no pod running or without deletion", time.time() - ended)
        until(lambda: not [pod for pod in self.cluster.objects("pod", "training.sluice/job")
                           if pod["metadata"]["name"].startswith(f"job{job.job}-")], 60, "gone")
        self.say("job ended to the API server having forgotten its pods", time.time() - ended)

    def test_2_losses(self):
        job = self.begin("figure2", 4000, "engine.num_workers=2, engine.max_workers=2, engine.num_ps=2")
        job.reached(2)
        for _ in range(3):
            since = self.delete(job.pods("worker")[0][0])
            self.say("worker killed to its rows given to others", self.first(job, "task_requeued", since))
            self.say("worker killed to its replacement at work", self.first(job, "worker_started", since))
            since = self.delete(job.pods("ps")[0][0])
            self.say("server killed to its partitions served by others", self.first(job, "server_lost", since))
            self.first(job, "partitions_moved", since)
            since = self.delete(job.pods("master")[0][0])
            self.say("master deleted to the next one at work", self.first(job, "master_took_over", since))
            before = job.count("epoch_done")
            job.reached(before + 1)
            self.say("master deleted to the end of the next epoch", time.time() - since)
            self.assertEqual(job.count("worker_lost"), job.count("worker_started") - 2, job.story())
        begun = time.time()
        self.cluster.ours("delete", "pod", job.pods("master")[0][0], "--grace-period=30", "--wait=false")
        self.say("master told to go (SIGTERM) to its successor at work", self.first(job, "master_took_over", begun))
        self.cluster.sql(f"CANCEL JOB {job.job}")
        job.ended(30)

    def test_3_thirty_workers_at_once(self):
        job = self.begin("figure3", 4000, "engine.num_workers=32, engine.max_workers=32, engine.num_ps=2, "
                         "engine.ps_resource_request='cpu=50m', engine.worker_resource_request='cpu=50m,memory=64Mi'",
                         cpu=None)
        until(lambda: job.count("worker_started") >= 32, 300, "32 workers" + job.story())
        names = {pod["metadata"]["name"] for pod in self.cluster.objects("pod", "training.sluice/role=worker")}
        since = self.delete(*sorted(names)[:30])

        def made():
            new = [pod for pod in self.cluster.objects("pod", "training.sluice/role=worker")
                   if pod["metadata"]["name"] not in names]
            return new if len(new) >= 30 else None
        new = until(made, 120, "30 new ones")
        self.say("30 of 32 workers deleted: all created by", time.time() - since)
        stamps = sorted(pod["metadata"]["creationTimestamp"] for pod in new)
        print(f"between {stamps[0]} and {stamps[-1]}")
        started = job.count("worker_started")
        until(lambda: job.count("worker_started") >= 62, 300, f"all at work, {started}")
        self.say("30 of 32 workers deleted: all at work by", time.time() - since)
        self.cluster.sql(f"CANCEL JOB {job.job}")
        job.ended(60)
