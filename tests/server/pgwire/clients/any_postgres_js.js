// postgres.js at the PostgreSQL door, over either database.
const assert = require('assert');
const postgres = require('postgres');

const login = Object.fromEntries(process.argv[2].split(' ').map((part) => part.split('=')));
const notices = [];
const sql = postgres({
  host: login.host, port: Number(login.port), database: login.dbname, username: login.user, max: 1,
  ssl: { rejectUnauthorized: false }, onnotice: (notice) => notices.push(notice.message),
});

async function main() {
  const columns = await sql`SELECT column_name, data_type FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name = ${'points'} AND column_name <> 'id' ORDER BY ordinal_position`;
  assert.strictEqual(columns[0].column_name, 'x');
  assert.strictEqual(columns[0].data_type, 'double precision');

  const [trained] = await sql`SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=${3}
    LABEL y INTO by_postgres_js`;
  assert.strictEqual(trained.model, 'by_postgres_js');
  assert.ok(notices.length > 0);
  for (const most of [3, 2]) {  // the second time by the statement that was prepared
    const scored = await sql`SELECT x FROM points WHERE x <= ${most} ORDER BY x TO PREDICT USING by_postgres_js`;
    assert.deepStrictEqual(scored.map((row) => row.x), [1, 2, 3].slice(0, most));
  }

  await sql`CREATE TABLE by_postgres_js_kinds (i BIGINT, f DOUBLE PRECISION, t TEXT, b BOOLEAN, d TIMESTAMP)`;
  await sql`INSERT INTO by_postgres_js_kinds ${sql([
    { i: 1, f: 0.5, t: 'ä', b: true, d: '2026-01-02 03:04:05' }, { i: 2, f: null, t: 'b', b: false, d: null }])}`;
  const kept = await sql`SELECT * FROM by_postgres_js_kinds ORDER BY i`;
  assert.deepStrictEqual([kept[0].i, kept[0].f, kept[0].t, kept[0].b, kept[0].d.getFullYear(), kept[1].f],
    ['1', 0.5, 'ä', true, 2026, null]);
  await assert.rejects(sql.begin(async (transaction) => {
    await transaction`DELETE FROM by_postgres_js_kinds`;
    throw new Error('taken back');
  }), /taken back/);
  const pieces = [];
  await sql`SELECT i FROM by_postgres_js_kinds ORDER BY i`.cursor(1, (rows) => { pieces.push(rows[0].i); });
  assert.deepStrictEqual(pieces, ['1', '2']);
  await sql`DROP TABLE by_postgres_js_kinds`;

  await assert.rejects(sql`SELECT * FROM points LABEL yy INTO m`, (error) => {
    assert.strictEqual(error.code, '42703');
    assert.strictEqual(error.position, '28');
    assert.ok(error.hint.includes("'y'"), error.hint);
    return true;
  });
  const training = sql`SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], train.epoch=100000
    LABEL y INTO m`;
  setTimeout(() => training.cancel(), 1000);
  await assert.rejects(training, (error) => error.code === '57014');
  assert.strictEqual(Number((await sql`SELECT 1 AS one`)[0].one), 1);
  await sql.end();
  console.log('ok');
}

main().catch((error) => {
  console.log(error);
  process.exit(1);
});
