// node-postgres at the PostgreSQL door, over either database.
const assert = require('assert');
const { Client } = require('pg');

const login = Object.fromEntries(process.argv[2].split(' ').map((part) => part.split('=')));
const options = { host: login.host, port: Number(login.port), database: login.dbname, user: login.user };

async function main() {
  const client = new Client({ ...options, ssl: { rejectUnauthorized: false } });
  const notices = [];
  client.on('notice', (notice) => notices.push(notice.message));
  await client.connect();
  const columns = await client.query("SELECT column_name, data_type FROM information_schema.columns WHERE table_schema ="
    + " 'public' AND table_name = $1 AND column_name = 'x'", ['points']);
  assert.deepStrictEqual(columns.rows, [{ column_name: 'x', data_type: 'double precision' }]);

  const trained = await client.query(
    'SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=3 LABEL y INTO by_node');
  assert.strictEqual(trained.rows[0].model, 'by_node');
  assert.ok(notices.length > 0);
  const scored = { name: 'score', text: 'SELECT x FROM points WHERE x <= $1 ORDER BY x TO PREDICT USING by_node' };
  for (const most of [3, 2]) {
    const rows = (await client.query({ ...scored, values: [most] })).rows;
    assert.deepStrictEqual(rows.map((row) => row.x), [1, 2, 3].slice(0, most));
  }
  await client.query('CREATE TABLE by_node_kinds (i BIGINT, f DOUBLE PRECISION, t TEXT, b BOOLEAN, d TIMESTAMP)');
  await client.query('INSERT INTO by_node_kinds VALUES ($1, $2, $3, $4, $5)',
    [1, 0.5, 'ä', true, '2026-01-02 03:04:05']);
  const [kept] = (await client.query('SELECT * FROM by_node_kinds')).rows;
  assert.deepStrictEqual([kept.i, kept.f, kept.t, kept.b, kept.d.getFullYear()], ['1', 0.5, 'ä', true, 2026]);
  await client.query('BEGIN');
  await client.query('DELETE FROM by_node_kinds');
  await client.query('ROLLBACK');
  assert.strictEqual((await client.query('SELECT * FROM by_node_kinds')).rowCount, 1);
  await client.query('DROP TABLE by_node_kinds');

  await assert.rejects(client.query('SELECT * FROM points LABEL yy INTO m'), (error) => {
    assert.strictEqual(error.code, '42703');
    assert.strictEqual(error.position, '28');
    assert.ok(error.hint.includes("'y'"), error.hint);
    return true;
  });
  // It cancels without TLS only.
  const endless = new Client({ ...options, ssl: false });
  await endless.connect();
  const training = endless.query(
    'SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], train.epoch=100000 LABEL y INTO m');
  setTimeout(() => new Client({ ...options, ssl: false }).cancel(endless, endless.activeQuery), 1000);
  await assert.rejects(training, (error) => error.code === '57014');
  assert.strictEqual(Number((await endless.query('SELECT 1 AS one')).rows[0].one), 1);
  await endless.end();
  await client.end();
  console.log('ok');
}

main().catch((error) => {
  console.log(error);
  process.exit(1);
});
