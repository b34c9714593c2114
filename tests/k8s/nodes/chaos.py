"""Jobs on real nodes, disturbed at random for some minutes: `run chaos`. Not one of the tests."""
import collections
import json
import os
import random
import time

from jobs_on_nodes import JobsOnNodes

MINUTES = float(os.environ.get("CHAOS_MINUTES", "15"))
SEED = int(os.environ.get("CHAOS_SEED", "1"))
EPOCHS = 60
MORE = "engine.num_workers=2, engine.min_workers=1, engine.max_workers=3, engine.num_ps=2"


class Chaos(JobsOnNodes):
    """One job after the other; what happens to them is chosen by CHAOS_SEED, for CHAOS_MINUTES."""

    def test_jobs_are_disturbed(self):
        self.chance = random.Random(SEED)
        self.done = collections.Counter()
        self.nodes = self.cluster.nodes()
        self.begun = time.time()
        jobs, lost = [], []
        while self.left_seconds() > 0:
            self.expect(EPOCHS)
            job = self.begin_endless(f"chaos{len(jobs)}", EPOCHS, MORE)
            jobs.append(job)
            while not job.over and self.left_seconds() > 0:
                time.sleep(self.chance.uniform(2, 12))
                self.disturb(job)
            if job.ended() == "FAILED" and "the only copy" in job.error:
                # Two servers hit within seconds: what a job without checkpoints does not survive, and says.
                lost.append(job.job)
                print(f"\n{job.story()}", flush=True)
            else:
                self.expect_exact(job)
            print(f"\n{time.time() - self.begun:.0f} s: {len(jobs) - len(lost)} jobs exact, {len(lost)} lost both "
                  f"copies of their parameters; {dict(self.done)}", flush=True)

    def left_seconds(self):
        return self.begun + 60 * MINUTES - time.time()

    def disturb(self, job):
        what = self.chance.choices(["worker", "ps", "master", "gateway", "restart", "away", "cut", "drain", "edit"],
                                   [8, 4, 4, 2, 1, 1, 1, 2, 4])[0]
        how = self.chance.choice([0, 1, 30])  # as by force, as by a hurried and by a patient kubectl
        names = self.names(job, what)
        node = self.chance.choice(self.nodes)[-1]
        if what in ("worker", "ps", "master", "gateway"):
            if not names:
                return
            self.end_pod(self.chance.choice(names), how)
        elif what == "restart":
            self.cluster.kubernetes("restart")
        elif what == "away":
            self.cluster.pause_api_server(self.chance.uniform(5, 30))
        elif what == "edit":
            self.edit(job)
        elif what == "cut":
            self.cluster.kubernetes("cut", node)
            time.sleep(self.chance.uniform(0, 20))
            self.bring_back(node)
        else:
            self.cluster.drain(f"node{node}").communicate(timeout=450)  # whether or not it comes to its end
            self.cluster.kubectl("uncordon", f"node{node}")
        print(f"{time.time() - self.begun:5.0f} s: {what} {how if names else node}", flush=True)
        self.done[what] += 1

    def edit(self, job):
        """What changes the job's workers, and what is wrong and changes nothing."""
        found = [each["metadata"]["name"] for each in self.cluster.objects("trainingjobs")
                 if each.get("status", {}).get("job") == job.job]
        spec = self.chance.choice([{"workers": {"max": 1}}, {"workers": {"max": 3}}, {"workers": {"min": 3, "max": 1}},
                                   {"statement": "SELECT a, y FROM points TO TRAIN DNNClassifier LABEL y INTO other"},
                                   {"source": {"secretName": "another"}}])
        for name in found:
            self.cluster.ours("patch", "tj", name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def names(self, job, what):
        if what == "gateway":
            return [pod["metadata"]["name"] for pod in self.cluster.gateways()]
        return [name for name, _ in job.pods(what)] if what in ("worker", "ps", "master") else []
