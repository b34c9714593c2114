// lib/pq at the PostgreSQL door, over either database.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/lib/pq"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func check(right bool, what ...interface{}) {
	if !right {
		log.Fatal(what...)
	}
}

func main() {
	login := os.Args[1] + " sslmode=require"
	notices := 0
	base, err := pq.NewConnector(login)
	must(err)
	db := sql.OpenDB(pq.ConnectorWithNoticeHandler(base, func(*pq.Error) { notices++ }))
	must(db.Ping())

	var n int
	var dataType string
	must(db.QueryRow("SELECT data_type FROM information_schema.columns WHERE table_schema = 'public' AND table_name = $1"+
		" AND column_name = 'x'", "points").Scan(&dataType))
	check(dataType == "double precision", dataType)

	rows, err := db.Query("SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=3" +
		" LABEL y INTO by_lib_pq")
	must(err)
	check(rows.Next(), "no row")
	columns, err := rows.Columns()
	must(err)
	check(columns[0] == "model", columns)
	rows.Close()
	check(notices > 0, "no notices")

	rows, err = db.Query("SELECT x FROM points WHERE x <= $1 ORDER BY x TO PREDICT USING by_lib_pq", 3.0)
	must(err)
	for n = 0; rows.Next(); n++ {
	}
	must(rows.Err())
	check(n == 3, n, " rows")

	_, err = db.Exec("CREATE TABLE by_lib_pq_kinds (i BIGINT, f DOUBLE PRECISION, t TEXT, b BOOLEAN)")
	must(err)
	tx, err := db.Begin()
	must(err)
	insert, err := tx.Prepare("INSERT INTO by_lib_pq_kinds VALUES ($1, $2, $3, $4)")
	must(err)
	for i := 0; i < 3; i++ {
		_, err = insert.Exec(i, float64(i)/4, fmt.Sprint("t", i), i%2 == 0)
		must(err)
	}
	must(tx.Commit())
	copying, err := db.Begin()
	must(err)
	into, err := copying.Prepare(pq.CopyIn("by_lib_pq_kinds", "i", "t"))
	must(err)
	_, err = into.Exec(7, "copied")
	must(err)
	_, err = into.Exec()
	must(err)
	must(into.Close())
	must(copying.Commit())
	var i int64
	var f sql.NullFloat64
	var t string
	var b sql.NullBool
	must(db.QueryRow("SELECT * FROM by_lib_pq_kinds WHERE i = $1", 2).Scan(&i, &f, &t, &b))
	check(i == 2 && f.Float64 == 0.5 && t == "t2" && b.Bool, i, f, t, b)
	must(db.QueryRow("SELECT * FROM by_lib_pq_kinds WHERE t = 'copied'").Scan(&i, &f, &t, &b))
	check(i == 7 && !f.Valid && !b.Valid, i, f, b)
	_, err = db.Exec("DROP TABLE by_lib_pq_kinds")
	must(err)

	_, err = db.Query("SELECT * FROM points LABEL yy INTO m")
	refused, ok := err.(*pq.Error)
	check(ok && refused.Code == "42703" && refused.Position == "28", err)

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = db.QueryContext(ctx, "SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8],"+
		" train.epoch=100000 LABEL y INTO m")
	check(err != nil, "it was not cancelled")
	must(db.QueryRow("SELECT 1").Scan(&n))
	fmt.Println("ok")
}
