// Reads census-like rows from PostgreSQL and from SQLite into RowBatches, compared with a bare loop
// over the same columns: COPY TO STDOUT drained through libpq, and sqlite3_step with
// sqlite3_column_*. Rounds are interleaved, so that a slow moment of the machine affects both;
// prints medians, and this process's CPU time, which other programs disturb less.
//
// Usage: read_bench [rows] [rounds]. SLUICE_TEST_POSTGRES names a server; otherwise one is started.
#include <fmt/core.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/census_rows.h"
#include "bench/measure.h"
#include "bench/must.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "tests/support/postgres_server.h"

namespace sluice {
namespace {

constexpr double kGoal = 0.8;
constexpr size_t kRowsPerBatch = 4'096;
constexpr int64_t kRowsPerShard = 10'000;

[[noreturn]] void Fail(const std::string& message) {
  fmt::print(stderr, "read_bench: {}\n", message);
  std::exit(1);
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void InParallel(int threads, const std::function<void(int)>& work) {
  std::vector<std::jthread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&work, i] { work(i); });
  }
}

// Our side: every shard of the dataset, read by whichever thread is free.
void ReadShards(catalog::DataSource& source, const catalog::DatasetSpec& spec, int connections,
                int64_t rows) {
  std::atomic<int> next{0};
  std::atomic<int64_t> seen{0};
  std::vector<size_t> columns;
  for (size_t i = 0; i < static_cast<size_t>(spec.columns_size()); ++i) {
    columns.push_back(i);
  }
  InParallel(connections, [&](int) {
    const auto reader = Must(source.OpenReader(spec));
    RowBatch batch;
    for (int shard = next++; shard < spec.shards_size(); shard = next++) {
      const auto stream = Must(reader->Read(spec.shards(shard), columns));
      do {
        Must(stream->Next(kRowsPerBatch, &batch));
        seen += static_cast<int64_t>(batch.rows);
      } while (batch.rows > 0);
    }
  });
  if (seen != rows) {
    Fail(fmt::format("read {} rows; expected {}", seen.load(), rows));
  }
}

// The peer on PostgreSQL: each connection drains its part of the table.
void DrainCopy(const std::string& url, int connections, int64_t blocks) {
  InParallel(connections, [&](int i) {
    PGconn* connection = PQconnectdb(url.c_str());
    const std::string copy = fmt::format(
        "COPY (SELECT * FROM census WHERE ctid >= '({},0)'::tid AND ctid < '({},0)'::tid)"
        " TO STDOUT",
        blocks * i / connections, blocks * (i + 1) / connections);
    PGresult* result =
        PQexec(connection, connections == 1 ? "COPY census TO STDOUT" : copy.c_str());
    if (PQresultStatus(result) != PGRES_COPY_OUT) {
      Fail(PQerrorMessage(connection));
    }
    PQclear(result);
    char* row = nullptr;
    while (PQgetCopyData(connection, &row, 0) > 0) {
      PQfreemem(row);
    }
    PQfinish(connection);
  });
}

// The peer on SQLite: each connection steps over its part of the table, and fetches every column,
// or none (which no real reader can do).
void StepRows(const std::string& path, int connections, int64_t rows, bool fetch) {
  InParallel(connections, [&](int i) {
    sqlite3* database = nullptr;
    sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
    sqlite3_exec(database, "PRAGMA mmap_size = 2147418112", nullptr, nullptr, nullptr);
    const std::string select = fmt::format("SELECT * FROM census WHERE rowid > {} AND rowid <= {}",
                                           rows * i / connections, rows * (i + 1) / connections);
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database, select.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      Fail(sqlite3_errmsg(database));
    }
    int64_t sum = 0;
    const int columns = fetch ? sqlite3_column_count(statement) : 0;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      for (int column = 0; column < columns; ++column) {
        if (sqlite3_column_type(statement, column) == SQLITE_INTEGER) {
          sum += sqlite3_column_int64(statement, column);
        } else {
          sum += sqlite3_column_text(statement, column) == nullptr;
          sum += sqlite3_column_bytes(statement, column);
        }
      }
    }
    if (fetch && sum == 0) {
      Fail("the bare loop read nothing");
    }
    sqlite3_finalize(statement);
    sqlite3_close(database);
  });
}

struct Rounds {
  std::vector<double> wall;
  std::vector<double> cpu;
  void Run(const std::function<void()>& work) {
    const double before = CpuSeconds();
    wall.push_back(Seconds(work));
    cpu.push_back(CpuSeconds() - before);
  }
};

void Compare(const std::string& what, int64_t rows, int rounds, const std::function<void()>& ours,
             const std::function<void()>& peer) {
  Rounds our;
  Rounds their;
  for (int round = 0; round < rounds; ++round) {
    their.Run(peer);
    our.Run(ours);
  }
  const auto count = static_cast<double>(rows);
  const double our_rate = count / Median(our.wall);
  const double peer_rate = count / Median(their.wall);
  fmt::print("{:34} {:>10.0f} {:>10.0f} {:>6.2f} {:>5.2f} {:>9.2f} {:>9.2f}\n", what, our_rate,
             peer_rate, our_rate / peer_rate, kGoal, Median(our.cpu) * 1e6 / count,
             Median(their.cpu) * 1e6 / count);
}

// The time before a statement's first row.
void PrintOpening(const std::string& what, catalog::DataSource& source, int rounds) {
  const auto schema = Must(source.Describe("SELECT * FROM census"));
  catalog::DatasetOptions options;
  options.rows_per_shard = kRowsPerShard;
  std::vector<double> statistics;
  std::vector<double> opening;
  for (int round = 0; round < rounds; ++round) {
    statistics.push_back(
        Seconds([&] { Must(source.Statistics("SELECT * FROM census", schema, {})); }));
    opening.push_back(Seconds([&] { Must(source.OpenDataset("SELECT * FROM census", options)); }));
  }
  fmt::print("{:34} statistics {:.1f} ms, snapshot and shards {:.1f} ms\n", what,
             Median(statistics) * 1e3, Median(opening) * 1e3);
}

void BenchPostgres(int64_t rows, int rounds) {
  const testing::PostgresTestDatabase database;
  if (database.url().empty()) {
    Fail("no PostgreSQL server");
  }
  const auto source = Must(catalog::OpenDataSource(database.url()));
  Must(source->Execute(fmt::format("CREATE TABLE census AS SELECT {} FROM"
                                   " generate_series(1::bigint, {}) AS s(i)",
                                   CensusColumns(), rows),
                       nullptr, {}));
  Must(source->Execute("VACUUM ANALYZE census", nullptr, {}));
  catalog::DatasetOptions options;
  options.rows_per_shard = kRowsPerShard;
  const auto dataset = Must(source->OpenDataset("SELECT * FROM census", options));
  const int64_t blocks = dataset->spec().shards(dataset->spec().shards_size() - 1).begin() / 65'536;
  for (const int connections : {1, 2}) {
    Compare(
        fmt::format("PostgreSQL, {} connection(s)", connections), rows, rounds,
        [&] { ReadShards(*source, dataset->spec(), connections, rows); },
        [&] { DrainCopy(database.url(), connections, blocks + blocks / 100 + 1); });
  }
  options.mixed = true;
  const auto mixed = Must(source->OpenDataset("SELECT * FROM census", options));
  Compare(
      "PostgreSQL, 1, mixed shards", rows, rounds,
      [&] { ReadShards(*source, mixed->spec(), 1, rows); },
      [&] { ReadShards(*source, dataset->spec(), 1, rows); });
  PrintOpening("PostgreSQL, before the first row", *source, rounds);
}

void BenchSqlite(int64_t rows, int rounds) {
  std::string directory = (std::filesystem::temp_directory_path() / "sluice-read-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) {
    Fail("cannot make a temporary directory");
  }
  const std::string path = directory + "/census.db";
  {
    const auto source = Must(catalog::OpenDataSource("sqlite:" + path));
    Must(source->Execute(
        "CREATE TABLE census (age INTEGER, workclass TEXT, fnlwgt INTEGER, education TEXT,"
        " education_num INTEGER, marital_status TEXT, occupation TEXT, relationship TEXT,"
        " race TEXT, sex TEXT, capital_gain INTEGER, capital_loss INTEGER,"
        " hours_per_week INTEGER, native_country TEXT, income TEXT)",
        nullptr, {}));
    Must(source->Execute(fmt::format("INSERT INTO census WITH RECURSIVE s(i) AS (SELECT 1 UNION"
                                     " ALL SELECT i + 1 FROM s WHERE i < {}) SELECT {} FROM s",
                                     rows, CensusColumns()),
                         nullptr, {}));
    catalog::DatasetOptions options;
    options.rows_per_shard = kRowsPerShard;
    const auto dataset = Must(source->OpenDataset("SELECT * FROM census", options));
    for (const int connections : {1, 2}) {
      Compare(
          fmt::format("SQLite, {} connection(s)", connections), rows, rounds,
          [&] { ReadShards(*source, dataset->spec(), connections, rows); },
          [&] { StepRows(path, connections, rows, true); });
    }
    options.mixed = true;
    const auto mixed = Must(source->OpenDataset("SELECT * FROM census", options));
    Compare(
        "SQLite, 1, mixed shards", rows, rounds,
        [&] { ReadShards(*source, mixed->spec(), 1, rows); },
        [&] { ReadShards(*source, dataset->spec(), 1, rows); });
    const double steps = Seconds([&] { StepRows(path, 1, rows, false); });
    fmt::print("{:34} {:>10} {:>10.0f}\n", "SQLite, steps that fetch nothing", "",
               static_cast<double>(rows) / steps);
    PrintOpening("SQLite, before the first row", *source, rounds);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  fmt::print("{} rows x 15 columns, medians of {} interleaved rounds\n", rows, rounds);
  fmt::print("{:34} {:>10} {:>10} {:>6} {:>5} {:>9} {:>9}\n", "", "rows/s", "bare loop", "ratio",
             "goal", "cpu us", "bare cpu");
  sluice::BenchPostgres(rows, rounds);
  sluice::BenchSqlite(rows, rounds);
  return 0;
}
