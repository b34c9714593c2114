// node-postgres at the PostgreSQL door.
const assert = require('assert');
const { Client } = require('pg');
const Cursor = require('pg-cursor');

const [host, port, database, user, password] = process.argv.slice(2);
const login = { host, port: Number(port), database, user, password };

async function main() {
  const client = new Client({ ...login, ssl: { rejectUnauthorized: false } });
  const notices = [];
  client.on('notice', (notice) => notices.push(notice));
  await client.connect();

  const trained = await client.query('SELECT * FROM points LABEL y INTO by_node');
  assert.strictEqual(trained.command, 'TRAIN');
  assert.strictEqual(trained.rows[0].model, 'by_node');
  assert.ok(notices.some((notice) => notice.message.includes('was chosen')), notices);

  // A named prepared statement with parameters, twice.
  const scored = {
    name: 'score',
    text: 'SELECT x FROM points WHERE x < $1 ORDER BY x TO PREDICT USING by_node',
  };
  for (const limit of [4, 6]) {
    const rows = (await client.query({ ...scored, values: [limit] })).rows;
    assert.strictEqual(rows.length, limit - 1);
    assert.deepStrictEqual(rows.map((row) => row.x).slice(0, 3), [1, 2, 3]);
    assert.ok('y' in rows[0]);
  }

  // Rows as they are wanted: a portal with a row limit, which is closed before its end.
  const cursor = client.query(
    new Cursor('SELECT x FROM points ORDER BY x TO PREDICT USING by_node'));
  assert.strictEqual((await cursor.read(5)).length, 5);
  assert.strictEqual((await cursor.read(7))[0].x, 6);
  await cursor.close();

  await assert.rejects(client.query('SELECT * FROM points LABEL yy INTO m'), (error) => {
    assert.strictEqual(error.code, '42703');
    assert.strictEqual(error.position, '28');
    assert.ok(error.hint.includes("'y'"), error.hint);
    return true;
  });

  // A transaction that is rolled back takes the table along.
  await client.query('BEGIN');
  await client.query('SELECT x FROM points TO PREDICT scored.y USING by_node');
  assert.strictEqual((await client.query('SELECT count(*) AS n FROM scored')).rows[0].n, '300');
  await client.query('ROLLBACK');
  assert.strictEqual((await client.query("SELECT to_regclass('scored') AS t")).rows[0].t, null);

  const endless = new Client({ ...login, ssl: false });
  await endless.connect();
  const training = endless.query(
    'SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], train.epoch=100000' +
    ' LABEL y INTO m');
  setTimeout(() => new Client({ ...login, ssl: false }).cancel(endless, endless.activeQuery), 1500);
  await assert.rejects(training, (error) => error.code === '57014');
  assert.strictEqual((await endless.query('SELECT 1 AS one')).rows[0].one, 1);
  await endless.end();
  await client.end();
  console.log('ok');
}

main().catch((error) => {
  console.log(error);
  process.exit(1);
});
