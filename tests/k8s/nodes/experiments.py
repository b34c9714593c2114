"""ElasticDL's experiments E1 and E2 on real nodes, beside the published figures: `run --nodes 3 experiments`, 20 minutes.

Not one of the tests. Jobs are paced by their database, so that a worker's speed is the same whatever this machine
does. A unit is a processor of ElasticDL's clusters, here 100m.
"""
import json
import threading
import time
import unittest

import api
import site_of_tests as site
import training
from cluster import until
from training import Training

UNIT = 100  # milliprocessors
SERVERS = 40  # of a node, for parameter servers, which ElasticDL's count does not have
ROWS = 10240000
WORK = 5020  # seconds of one worker that a job takes
JOB = f"engine.num_ps=1, engine.ps_resource_request='cpu=10m,memory=64Mi', " \
      f"engine.worker_resource_request='cpu={UNIT}m,memory=64Mi', " \
      f"engine.master_resource_request='cpu={UNIT}m,memory=64Mi'"
# Every hundredth row waits until it is due, so that a busy machine does not make a worker slower; a delay beyond 50 ms is
# not made up for. The time between two such rows, in microseconds, is a sequence's, which has its present value in every
# snapshot: 0 while the statement is planned.
PACED = """CREATE SEQUENCE pace_{0} MINVALUE 0 START 0;
 CREATE TABLE paced_{0} AS SELECT i, (i * 7919 % 1000) / 500.0::float8 - 1 AS a,
 (i * 104729 % 997) / 500.0::float8 - 1 AS b, (i * 7919 % 1000 + i * 104729 % 997 > 1000)::int AS y
 FROM generate_series(1::bigint, {1}) AS i;
 ALTER TABLE paced_{0} ADD PRIMARY KEY (i);
 ALTER TABLE paced_{0} OWNER TO ann; ALTER SEQUENCE pace_{0} OWNER TO ann;
 ANALYZE paced_{0};
 CREATE FUNCTION wait_{0}(i bigint) RETURNS float8 IMMUTABLE LANGUAGE sql AS $$
 WITH clock AS MATERIALIZED (SELECT extract(epoch FROM clock_timestamp())::float8 AS now),
 next AS MATERIALIZED (SELECT now, greatest(nullif(current_setting('paced.due', true), '')::float8, now - 0.05)
 + (SELECT last_value FROM public.pace_{0}) / 1e6 AS due FROM clock)
 SELECT length(set_config('paced.due', due::text, false)) * 0 + length(pg_sleep(due - now)::text) FROM next $$;
 CREATE FUNCTION pace_{0}(i bigint, a float8) RETURNS float8 IMMUTABLE LANGUAGE sql AS
 'SELECT CASE WHEN i % 100 <> 0 THEN a ELSE a + public.wait_{0}(i) END'"""


class Watched(threading.Thread):
    """What runs and is not being ended, four times a second: self.seen, (time, {job or "web": units})."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen, self.over = [], False
        self.start()

    def run(self):
        connection = api.connect()
        while not self.over:
            connection.request("GET", api.PODS)
            self.seen.append((time.time(), self.units(json.load(connection.getresponse())["items"])))
            time.sleep(0.25)

    @staticmethod
    def units(pods):
        units = {}
        for pod in pods:
            labels = pod["metadata"].get("labels", {})
            whose = labels.get("app") or labels.get("training.sluice/job")
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"] \
                    and labels.get("training.sluice/role") in (None, "master", "worker") and whose:
                units[whose] = units.get(whose, 0) + 1
        return units

    def end(self):
        self.over = True
        self.join()


class Experiments(unittest.TestCase):
    def setUp(self):
        self.cluster = site.cluster
        self.assertEqual(len(self.cluster.nodes()), 3, "run --nodes 3 experiments")
        training.undisturbed(self.cluster, 1)  # the catalog is there
        self.cluster.kubectl("-n", "sluice-system", "scale", "deployment/sluice-controller", "--replicas=1")
        self.addCleanup(self.cluster.kubectl, "-n", "sluice-system", "scale", "deployment/sluice-controller",
                        "--replicas=0")
        self.cluster.kubectl("-n", "sluice-system", "rollout", "status", "deployment/sluice-controller",
                             "--timeout=180s")

    def leave(self, units):
        """Units that each node has left; a pod that does nothing takes the rest."""
        def pods():
            return json.loads(self.cluster.kubectl("get", "pod", "-A", "-o", "json"))["items"]
        until(lambda: not any("deletionTimestamp" in pod["metadata"] for pod in pods()), 120, "what ends is gone")
        taken = {node: 0 for node in self.cluster.nodes()}
        for pod in pods():
            for container in pod["spec"]["containers"]:
                cpu = container.get("resources", {}).get("requests", {}).get("cpu", "0")
                taken[pod["spec"]["nodeName"]] += int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
        for node in taken:
            has = 1000 * int(self.cluster.object("nodes", node)["status"]["allocatable"]["cpu"])
            rest = has - taken[node] - units * UNIT - SERVERS
            self.assertGreaterEqual(rest, 0, f"{node} has {has}m, of which {taken[node]}m are taken")
            self.cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"rest-{node}"},
                                "spec": {"nodeName": node, "terminationGracePeriodSeconds": 1,
                                         "containers": [self.idle("rest", rest)]}})
            self.addCleanup(self.cluster.ours, "delete", "pod", f"rest-{node}")

    @staticmethod
    def idle(name, millis):
        return {"name": name, "image": "sluice.test/tools:1", "imagePullPolicy": "Never",
                "resources": {"requests": {"cpu": f"{millis}m"}}}

    def prepare(self, *names):
        """The tables of these jobs."""
        for name in names:
            if not self.cluster.database.value(f"SELECT 1 FROM pg_tables WHERE tablename = 'paced_{name}'"):
                self.cluster.database.run(PACED.format(name, ROWS))

    def begin(self, name, work, workers):
        """A job with work for so many seconds of one worker."""
        self.cluster.database.run(f"SELECT setval('pace_{name}', 0)")
        after = training.last_job(self.cluster)
        begun = time.time()
        client = self.cluster.client(
            f"SELECT pace_{name}(i, a) AS a, b, y FROM paced_{name} TO TRAIN DNNClassifier WITH "
            f"model.hidden_units=[8], train.epoch=1, train.batch_size=1024, split.fraction=0, {JOB}, "
            # As many as ElasticDL's tasks have: ours would take 15 seconds, for which an epoch waits at its end.
            f"engine.batches_per_shard=8, "
            f"engine.num_workers=1, engine.min_workers=1, engine.max_workers={workers} LABEL y INTO {name}")
        self.addCleanup(client.kill)
        job = Training(self.cluster, name, after, client)
        self.cluster.database.run(f"SELECT setval('pace_{name}', {round(1e8 * work / ROWS)})")
        return job, begun

    def test_e1_two_jobs_of_13_on_24_processors(self):
        self.prepare("first", "second")
        self.leave(8)
        watched = Watched()
        self.addCleanup(watched.end)
        first, begun = self.begin("first", WORK, 22)
        time.sleep(begun + 30 - time.time())
        second, _ = self.begin("second", WORK, 22)
        ends = []
        for job in (first, second):
            self.assertEqual(job.ended(1200), "SUCCEEDED", job.story())
            ends.append(time.time() - begun)
            self.assertEqual(job.rows, ROWS, job.story())
        used = self.mean_used([units for at, units in watched.seen if begun + 10 <= at <= begun + max(ends) - 10])
        print("\n| E1 | Sluice | goal | ElasticDL | gang | bound |\n|---|---|---|---|---|---|\n"
              f"| both jobs are over after (s) | {max(ends):.0f} | 480 | 580 | 795 | 456 |\n"
              f"| units used, of 24 | {used:.1f} | | | | |", flush=True)

    @staticmethod
    def mean_used(seen):
        return sum(sum(units.values()) for units in seen) / len(seen)

    def test_e2_a_job_beside_a_service_on_21_processors(self):
        self.prepare("beside")
        self.leave(7)
        labels = {"app": "web"}
        self.cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
                            "spec": {"replicas": 0, "selector": {"matchLabels": labels},
                                     "template": {"metadata": {"labels": labels},
                                                  "spec": {"terminationGracePeriodSeconds": 1,
                                                           "containers": [self.idle("web", UNIT)]}}}})
        self.addCleanup(self.cluster.ours, "delete", "deployment", "web")
        watched = Watched()
        self.addCleanup(watched.end)
        job, begun = self.begin("beside", 3 * WORK, 20)
        until(lambda: sum(watched.seen[-1][1].values()) == 21, 60, lambda: f"everything is used: {job.story()}")
        full = time.time()
        for at, wanted in ((85, 3), (172, 8), (286, 14), (367, 11), (375, 8), (467, 5), (470, 3), (540, None)):
            time.sleep(max(0.0, begun + at - time.time()))
            if wanted is not None:
                self.cluster.ours("scale", "deployment/web", f"--replicas={wanted}")
        watched.end()
        self.assertFalse(job.over, job.story())
        self.cluster.sql(f"CANCEL JOB {job.job}")
        job.ended(60)
        seen = [(at, units) for at, units in watched.seen if at >= full]
        dips, since = [], None
        for at, units in seen:
            less = sum(units.values()) < 21
            if less and since is None:
                since = at
            elif not less and since is not None:
                dips.append((since - begun, at - since))
                since = None
        self.assertIsNone(since, f"everything is used in the end: {seen[-1]}\n{job.story()}")
        said = ", ".join(f"{length:.1f} s at {at:.0f} s" for at, length in dips)
        print("\n| E2 | Sluice | goal | ElasticDL |\n|---|---|---|---|\n"
              f"| used | {100 * self.mean_used([units for _, units in seen]) / 21:.1f} % | 99 % | over 90 % |\n"
              f"| longest dip (s) | {max(length for _, length in dips):.1f} | 2 | 5 to 20 |\n"
              f"dips: {said}", flush=True)
