"""What an operator does with kubectl, and what goes wrong in an installation."""
import json
import os
import re
import sys
import time

from cluster import until
from jobs_on_nodes import TWO, JobsOnNodes
from training import EPOCHS, SLOW, Training, pace, statement


def training_job(name, text, **spec):
    spec = {"statement": text, "source": {"secretName": "ann-source"}, "workers": {"min": 1, "max": 2},
            "servers": {"max": 2}, **spec}
    return {"apiVersion": "training.sluice/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
            "spec": spec}


class AnOperator(JobsOnNodes):
    def setUp(self):
        self.expect(EPOCHS)

    def condition(self, name):
        """Its conditions that hold, with their messages."""
        status = self.cluster.object("trainingjobs", name).get("status", {})
        return {each["type"]: each.get("message", "") for each in status.get("conditions", [])
                if each["status"] == "True"}

    def test_a_created_job_is_suspended_resumed_and_complete(self):
        folder = f"{self.cluster.folder}/checkpoints"
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o777)
        self.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "checkpoints"},
                            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
                                     "storageClassName": "", "hostPath": {"path": folder}}})
        self.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                            "metadata": {"name": "checkpoints"},
                            "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "",
                                     "volumeName": "checkpoints",
                                     "resources": {"requests": {"storage": "1Gi"}}}})
        more = (f"{TWO}, engine.checkpoint_dir='/checkpoints/nightly', "
                "engine.volume='claim_name=checkpoints,mount_path=/checkpoints'")
        self.cluster.apply(training_job("nightly", statement("nightly", EPOCHS, more)))
        job = Training(self.cluster, "nightly")
        pace(self.cluster, SLOW)
        job.reached(3)
        self.cluster.ours("patch", "tj", "nightly", "--type=merge", "-p", '{"spec":{"suspend":true}}')
        self.cluster.ours("wait", "--for=condition=Suspended", "tj/nightly", "--timeout=180s")
        self.assertEqual(job.state, "SUSPENDED", job.story())
        until(lambda: not self.cluster.objects("pods", "training.sluice/role"), 300, "every pod is gone")
        pace(self.cluster, 0)
        self.cluster.ours("patch", "tj", "nightly", "--type=merge", "-p", '{"spec":{"suspend":false}}')
        self.cluster.ours("wait", "--for=condition=Complete", "tj/nightly", "--timeout=600s")
        self.assertEqual(job.sha, self.sha, job.story())
        self.assertEqual(job.rows, self.rows, job.story())
        login = self.cluster.database.value("SELECT l.login FROM sluice.job_logins l JOIN sluice.jobs j "
                                            "ON j.id = l.job_id WHERE j.model = 'nightly'")
        self.assertRegex(login, "^sluice_job_", "its masters wrote with a login of the job's own")
        shown = self.cluster.ours("get", "tj", "nightly")
        self.assertRegex(shown, r"nightly +Complete +0 +2 +2 +100 ")

    def test_a_deleted_job_is_cancelled_though_its_master_is_dead(self):
        self.cluster.apply(training_job("deleted", statement("deleted", 100000)))
        job = Training(self.cluster, "deleted")
        job.reached(2)
        master = job.pods("master")[0][0]
        self.cluster.ours("delete", "pod", master, "--grace-period=0", "--force", "--wait=false")
        self.cluster.ours("delete", "tj", "deleted")
        self.assertEqual(job.ended(180), "CANCELLED", job.story())
        until(lambda: not self.cluster.objects("pods", "training.sluice/role"), 300, "every pod is gone")

    def test_trees_go_on_when_their_gateways_pod_is_deleted(self):
        """They train in it; its process is the container's first, which says so when it ends."""
        trees = ("SELECT a, b, y FROM points TO TRAIN xgboost.gbtree WITH tree_method='exact', "
                 "train.num_boost_round=8000 LABEL y INTO ")
        self.cluster.apply(training_job("trees", trees + "trees"))
        job = Training(self.cluster, "trees")
        until(lambda: self.condition("trees").keys() == {"Running"}, 60, "it trains")
        begun = time.monotonic()
        self.end_pod(self.cluster.gateway_pod()[0], 30)
        job.happened("taken_over", 1, 120)
        print(f"the next gateway continues the trees {time.monotonic() - begun:.0f} s after the deletion",
              file=sys.stderr)
        self.cluster.ours("patch", "tj", "trees", "--type=merge", "-p", json.dumps({"spec": {"statement": trees + "b"}}))
        until(lambda: "spec.statement" in self.condition("trees").get("SpecInvalid", ""), 60, "it says that it cannot")
        self.cluster.ours("wait", "--for=condition=Complete", "tj/trees", "--timeout=600s")
        self.assertEqual((job.state, job.count("taken_over")), ("SUCCEEDED", 1), job.story())

    def test_one_that_is_created_suspended_says_so(self):
        self.cluster.apply(training_job("later", statement("later", 2), suspend=True))
        self.cluster.ours("wait", "--for=condition=Suspended", "tj/later", "--timeout=60s")
        self.cluster.ours("patch", "tj", "later", "--type=merge", "-p", '{"spec":{"suspend":false}}')
        self.cluster.ours("wait", "--for=condition=Complete", "tj/later", "--timeout=300s")

    def test_a_wrong_statement_is_a_condition_with_a_caret(self):
        self.cluster.apply(training_job("wrong", "SELECT a, b, y FROM points\nTO TRAIN DNNClassifier LABEL z INTO m"))
        self.cluster.ours("wait", "--for=condition=Failed", "tj/wrong", "--timeout=180s")
        self.assertRegex(self.condition("wrong")["Failed"], r"LABEL z INTO m\n +\^")

    def test_a_missing_image_fails_the_job_in_the_kubelets_words(self):
        self.install_another("other")
        gateway = "deployment/sluice-gateway"
        arguments = self.cluster.object("deployments", "sluice-gateway", "other")["spec"]["template"]["spec"]
        arguments = arguments["containers"][0]["args"]
        at = next(i for i, each in enumerate(arguments) if each.startswith("--pods-image="))
        self.cluster.kubectl("-n", "other", "patch", gateway, "--type=json", "-p",
                             f'[{{"op":"replace","path":"/spec/template/spec/containers/0/args/{at}",'
                             '"value":"--pods-image=sluice.test/absent:1"}]')
        self.cluster.wait_for_gateway("other")
        said = self.cluster.sql(statement("imageless", 5), namespace="other")
        self.assertRegex(said, "ErrImageNeverPull|ImagePullBackOff|ErrImagePull")
        self.assertEqual(Training(self.cluster, "imageless").state, "FAILED")

    def install_another(self, namespace):
        """A gateway that is gone after the test: it would take processors from others."""
        self.addCleanup(self.cluster.kubectl, "delete", "namespace", namespace)
        self.cluster.install_into(namespace)

    def test_missing_rights_are_named_all_at_once(self):
        self.install_another("powerless")
        self.cluster.wait_for_gateway("powerless")
        self.cluster.kubectl("-n", "powerless", "delete", "rolebinding", "sluice-gateway")
        self.cluster.kubectl("-n", "powerless", "delete", "pod", "-l", "app.kubernetes.io/component=gateway",
                             "--grace-period=1", "--wait=true")

        def last_words():
            return self.cluster.kubectl("-n", "powerless", "logs", "-l", "app.kubernetes.io/component=gateway",
                                        check=False).stdout
        # Of one container: the next one has said nothing yet.
        until(lambda: re.search("rights are missing in namespace 'powerless': .*create trainingjobs.*create pods",
                                last_words()), 180, "it names them all")

    def test_a_pod_larger_than_its_quota_fails_the_job_at_once_with_a_hint(self):
        self.cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"},
                            "spec": {"hard": {"limits.memory": "40Gi", "requests.memory": "20Gi"}}})
        self.addCleanup(self.cluster.ours, "delete", "resourcequota", "small")
        # Every other pod of the job says its memory, or the quota would refuse it.
        said = self.cluster.sql(statement("large", EPOCHS, f"{TWO}, engine.worker_resource_limit='memory=64Gi'"))
        self.assertRegex(said, r"(?s)exceeded quota: small.*engine\.memory")
        self.assertEqual(Training(self.cluster, "large").state, "FAILED")

    def test_processors_that_no_node_has_are_told_at_once(self):
        self.cluster.apply(training_job("greedy", statement("greedy", EPOCHS, TWO, cpu=73)))
        until(lambda: "PodWaits" in {each["reason"] for each in self.cluster.objects("events")
                                     if each["involvedObject"]["name"] == "greedy"}, 30, "an Event says it")
        events = [each for each in self.cluster.objects("events") if each["involvedObject"]["name"] == "greedy"]
        self.assertRegex("".join(each["message"] for each in events), "Insufficient cpu")
        self.cluster.ours("delete", "tj", "greedy")
        self.assertEqual(Training(self.cluster, "greedy").ended(180), "CANCELLED")

    def test_a_quota_leaves_the_job_fewer_workers(self):
        self.cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
                            "spec": {"hard": {"pods": "5"}}})
        self.addCleanup(self.cluster.ours, "delete", "resourcequota", "few")
        said = self.cluster.sql(statement("few", EPOCHS, "engine.num_workers=4, engine.min_workers=1, "
                                          "engine.max_workers=4, engine.num_ps=2"))
        job = Training(self.cluster, "few")
        self.assertEqual((job.state, job.rows, job.sha), ("SUCCEEDED", self.rows, self.sha), said + job.story())
        reasons = {event["reason"] for event in self.cluster.objects("events")}
        self.assertIn("QuotaExceeded", reasons)

