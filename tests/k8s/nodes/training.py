"""Trainings whose every row counts: what each trained, and the bits that it stored."""
from cluster import until

ROWS = 15000
EPOCHS = 20
# Every hundredth row waits for as many milliseconds as a sequence says, which has its present value in every snapshot:
# so that a job is not over before it has been disturbed, on whatever machine.
TABLE = f"""CREATE SEQUENCE pace MINVALUE 0 START 0; ALTER SEQUENCE pace OWNER TO ann;
 CREATE FUNCTION paced(i bigint, a float8) RETURNS float8 IMMUTABLE LANGUAGE sql AS $$ SELECT CASE WHEN i % 100 <> 0
 THEN a ELSE a + length(pg_sleep((SELECT last_value FROM public.pace) / 1e3)::text) END $$;
 CREATE TABLE points AS SELECT i, (i * 7919 % 1000) / 500.0::float8 - 1 AS a,
 (i * 104729 % 997) / 500.0::float8 - 1 AS b,
 ((i * 7919 % 1000) + (i * 104729 % 997) > 1000)::int AS y FROM generate_series(1::bigint, {ROWS}) AS i;
 ALTER TABLE points OWNER TO ann; ANALYZE points"""


def statement(model, epochs, more="engine.num_workers=2, engine.max_workers=2, engine.num_ps=2", cpu=0.1):
    """In synchronous mode: the same bits whoever trains."""
    return (f"SELECT paced(i, a) AS a, b, y FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[16], "
            f"train.epoch={epochs}, train.batch_size=64, engine.seed=5, engine.sync=true, "
            f"{'' if cpu is None else f'engine.cpu={cpu}, '}"
            f"{more} LABEL y INTO {model}")


SLOW = 60  # an epoch of two workers takes five seconds


def pace(cluster, milliseconds):
    cluster.database.run(f"SELECT setval('pace', {milliseconds})")


def trees(model, more):
    """Long enough to be disturbed; the same bits wherever they grow."""
    return (f"SELECT a, b, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=400, subsample=0.8, "
            f"{more} LABEL y INTO {model}")


class Training:
    """One job, as its row and its events show it."""

    def __init__(self, cluster, model, after=0, client=None):
        """The newest job of that model, later than job `after`; `client`: the psql that asked for it."""
        self.cluster, self.model = cluster, model
        query = f"SELECT max(id) FROM sluice.jobs WHERE model = '{model}' AND id > {after}"

        def number():
            refused = client is not None and client.poll() is not None
            found = cluster.database.value(query)
            assert found or not refused, f"no job for {model}: {client.stdout.read()}"
            return found
        self.job = int(until(number, 180, f"a job for {model}"))

    def _value(self, query):
        return self.cluster.database.value(query)

    @property
    def state(self):
        return self._value(f"SELECT state FROM sluice.jobs WHERE id = {self.job}")

    @property
    def error(self):
        return self._value(f"SELECT error FROM sluice.jobs WHERE id = {self.job}")

    @property
    def rows(self):
        return int(self._value(f"SELECT rows_trained FROM sluice.jobs WHERE id = {self.job}"))

    @property
    def sha(self):
        return self._value(f"SELECT weights_sha256 FROM sluice.model_versions WHERE name = '{self.model}' "
                           f"AND job = {self.job}")

    def pods(self, role=""):
        return self.cluster.pods(self.job, role)

    def events(self, kind=None):
        """(seconds since 1970, kind, detail), in their order."""
        only = f" AND kind = '{kind}'" if kind else ""
        rows = self.cluster.database.run("SELECT micros / 1e6, kind, detail FROM sluice.job_events "
                                         f"WHERE job_id = {self.job}{only} ORDER BY position")
        return [(float(at), name, detail) for at, name, detail in rows]

    def count(self, kind):
        return len(self.events(kind))

    def reached(self, epochs, seconds=300):
        until(lambda: self.count("epoch_done") >= epochs or self.over, seconds,
              lambda: f"epoch {epochs} of {self.model}: {self.story()}")
        assert not self.over, f"{self.model} was over too soon: {self.story()}"

    def happened(self, kind, times=1, seconds=180):
        until(lambda: self.count(kind) >= times, seconds, lambda: f"{kind} of {self.model}: {self.story()}")

    @property
    def over(self):
        return self.state not in ("RUNNING", "QUEUED", "SUSPENDED")

    def ended(self, seconds=600):
        until(lambda: self.over, seconds, lambda: f"the end of {self.model}: {self.story()}")
        return self.state

    def story(self):
        events = self.events()
        begun = events[0][0] if events else 0
        lines = [f"{at - begun:7.1f} {kind}: {detail}" for at, kind, detail in events
                 if kind not in ("epoch_done", "evaluation_done")]
        return f"job {self.job} is {self.state} {self.error}\n" + "\n".join(lines[-60:])


def last_job(cluster):
    return int(cluster.database.value("SELECT coalesce(max(id), 0) FROM sluice.jobs"))


def undisturbed(cluster, epochs):
    """The sha256 of the model and the rows trained where nobody disturbs; trained once."""
    if not cluster.database.value("SELECT 1 FROM pg_tables WHERE tablename = 'points'"):
        cluster.database.run(TABLE)
    pace(cluster, 0)
    known = f"FROM sluice.model_versions WHERE name = 'undisturbed{epochs}'"
    if not cluster.database.value("SELECT 1 FROM pg_tables WHERE tablename = 'model_versions'") or \
            not cluster.database.value(f"SELECT 1 {known}"):
        said = cluster.sql(statement(f"undisturbed{epochs}", epochs))
        job = Training(cluster, f"undisturbed{epochs}")
        assert job.ended() == "SUCCEEDED", said + job.story()
    sha, job = cluster.database.run(f"SELECT weights_sha256, job {known}")[0]
    return sha, int(cluster.database.value(f"SELECT rows_trained FROM sluice.jobs WHERE id = {job}"))
