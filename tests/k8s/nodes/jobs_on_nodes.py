"""What tests of jobs on real nodes share."""
import unittest

import site_of_tests as site
import training
from cluster import until
from training import EPOCHS, Training, statement

TWO = "engine.num_workers=2, engine.max_workers=2, engine.num_ps=2"


class JobsOnNodes(unittest.TestCase):
    """Its jobs end as if nobody had disturbed them."""

    @property
    def cluster(self):
        return site.cluster

    def begin(self, model, more=TWO, cpu=0.1):
        """By SQL; self.client is psql, which waits for its end. It is slow until expect_exact."""
        self.expect(EPOCHS)
        job = self.begin_endless(model, EPOCHS, more, cpu)
        training.pace(self.cluster, training.SLOW)
        return job

    def begin_endless(self, model, epochs=100000, more=TWO, cpu=0.1):
        """One that is to be cancelled."""
        after = training.last_job(self.cluster)
        self.client = self.cluster.client(statement(model, epochs, more, cpu))
        self.addCleanup(self.client.kill)
        return Training(self.cluster, model, after, self.client)

    def expect(self, epochs):
        """What a job of so many epochs comes to where nobody disturbs it."""
        self.sha, self.rows = training.undisturbed(self.cluster, epochs)

    def expect_exact(self, job):
        """It succeeded; no row was lost, none trained twice; the same bits as undisturbed."""
        training.pace(self.cluster, 0)
        self.assertEqual((job.ended(), job.rows, job.sha), ("SUCCEEDED", self.rows, self.sha), job.story())
        for kind in ("pods", "services", "secrets"):
            # A node that has just come back takes a while to say that its pods have ended.
            until(lambda: not self.left(kind, job), 180, f"no {kind} of {job.model} are left")

    def left(self, kind, job):
        return [each for each in self.cluster.objects(kind, "training.sluice/job")
                if each["metadata"]["name"].startswith(f"job{job.job}-")]

    def end_pod(self, name, grace=0):
        how = ["--force"] if grace == 0 else []
        self.cluster.ours("delete", "pod", name, f"--grace-period={grace}", "--wait=false", *how)

    def bring_back(self, node):
        self.cluster.kubernetes("add", node)
        until(lambda: self.cluster.is_ready(f"node{node}"), 60, f"node{node} is ready")
