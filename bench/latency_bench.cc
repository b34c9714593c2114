// Latency of small statements: a running gateway over gRPC, a 110-row iris-like table, and parse +
// bind + plan alone. Prints each median next to its limit. Usage: latency_bench [path of sluice]
// [--source URL] (default: an SQLite file of its own)
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/clocked_source.h"
#include "bench/measure.h"
#include "bench/must.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "server/gateway/gateway_client.h"

namespace {

using sluice::Must;
using sluice::OkStatus;
using sluice::RowBatch;
using sluice::Schema;
using sluice::Status;

constexpr char kTrain[] =
    "SELECT * FROM iris_bench TO TRAIN DNNClassifier WITH model.n_classes=3, "
    "model.hidden_units=[10,20], train.epoch=10 LABEL class INTO iris_bench_model;";
// Hardly more than what every training costs: planning, a job, one epoch, storing the model.
constexpr char kTrainOnce[] =
    "SELECT * FROM iris_bench_1000 TO TRAIN DNNClassifier WITH train.epoch=1 LABEL class "
    "INTO iris_bench_once;";
constexpr char kPredict[] =
    "SELECT * FROM iris_bench_1000 TO PREDICT iris_bench_scored.class USING iris_bench_model;";

class SilentSink final : public sluice::executor::ResultSink {
 public:
  Status Header(const Schema&) override { return OkStatus(); }
  Status Rows(const RowBatch&) override { return OkStatus(); }
  void Notice(const std::string&) override {}
  void Progress(const sluice::elastic::Progress&) override {}
  void Done(const std::string&) override {}
};

double MedianMilliseconds(int rounds, const std::function<void()>& run) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    times.push_back(1e3 * sluice::Seconds(run));
  }
  return sluice::Median(times);
}

// A child process `sluice serve` on a free port; its first line of output names the address.
struct Gateway {
  pid_t pid = 0;
  std::string address;
};

Gateway StartGateway(const std::string& binary, const std::string& source) {
  int output[2];
  if (pipe(output) != 0) {
    std::perror("pipe");
    std::exit(1);
  }
  Gateway gateway;
  gateway.pid = fork();
  if (gateway.pid == 0) {
    dup2(output[1], STDOUT_FILENO);
    execl(binary.c_str(), binary.c_str(), "serve", "--auth", "trust", "--source", source.c_str(),
          "--grpc", "127.0.0.1:0", nullptr);
    std::perror(binary.c_str());
    _exit(127);
  }
  close(output[1]);
  std::string line;
  std::array<char, 1> byte{};
  while (read(output[0], byte.data(), 1) == 1 && byte[0] != '\n') {
    line += byte[0];
  }
  const size_t at = line.find("127.0.0.1:");
  if (at == std::string::npos) {
    std::fprintf(stderr, "the gateway said: %s\n", line.c_str());
    std::exit(1);
  }
  gateway.address = line.substr(at, line.find_first_not_of("0123456789.:", at) - at);
  return gateway;
}

void MakeTables(sluice::catalog::DataSource& source) {
  std::string values;
  for (int i = 0; i < 1000; ++i) {
    const int label = i % 3;
    const double noise = (i * 7919 % 100) / 100.0;
    values += (i == 0 ? "(" : ",(") + std::to_string(5 + label * 0.5 + noise) + "," +
              std::to_string(3 + noise / 2) + "," + std::to_string(1.5 + label * 1.8 + noise / 3) +
              "," + std::to_string(0.2 + label * 0.9 + noise / 5) + "," + std::to_string(label) +
              ")";
  }
  const std::string columns =
      "(sepal_length DOUBLE PRECISION, sepal_width DOUBLE PRECISION, petal_length DOUBLE "
      "PRECISION, "
      "petal_width DOUBLE PRECISION, class INTEGER)";
  for (const std::string& sql :
       {std::string("DROP TABLE IF EXISTS iris_bench"), "CREATE TABLE iris_bench " + columns,
        std::string("DROP TABLE IF EXISTS iris_bench_1000"),
        "CREATE TABLE iris_bench_1000 " + columns, "INSERT INTO iris_bench_1000 VALUES " + values,
        std::string("INSERT INTO iris_bench SELECT * FROM iris_bench_1000 LIMIT 110")}) {
    Must(source.Execute(sql, nullptr, {}));
  }
}

void Show(const char* what, double milliseconds, double limit) {
  std::printf("%-48s %7.2f ms   limit %6.1f ms   %5.2f of it\n", what, milliseconds, limit,
              milliseconds / limit);
  std::fflush(stdout);
}

// Separates the queries to the database, except the one whether the model exists.
void ShowPlanning(sluice::catalog::DataSource& source, sluice::catalog::ModelStore& models) {
  constexpr int kRounds = 101;
  std::vector<double> own, database;
  for (int i = 0; i < kRounds; ++i) {
    sluice::ClockedSource clocked(source);
    const double all =
        1e3 * sluice::Seconds([&] {
          const auto statements = Must(sluice::parser::Parse(kTrain));
          Must(sluice::planner::MakePlan(std::get<sluice::parser::TrainStatement>(statements[0]),
                                         clocked, models, {}));
        });
    database.push_back(1e3 * clocked.seconds());
    own.push_back(all - database.back());
  }
  Show("parse + bind + plan, without the database's part", sluice::Median(own), 1);
  std::printf("%-48s %7.2f ms\n", "the database's part of it", sluice::Median(database));
}

}  // namespace

int main(int argc, char** argv) {
  std::string binary = std::filesystem::path(argv[0]).parent_path() / "../server/sluice";
  std::string source_url;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--source" && i + 1 < argc) {
      source_url = argv[++i];
    } else {
      binary = argv[i];
    }
  }
  std::string folder = std::filesystem::temp_directory_path() / "sluice-latency-XXXXXX";
  if (source_url.empty()) {
    if (mkdtemp(folder.data()) == nullptr) {
      std::perror("mkdtemp");
      return 1;
    }
    source_url = "sqlite:" + folder + "/latency.db";
  }
  sluice::catalog::Database database = Must(sluice::catalog::OpenDatabase(source_url));
  MakeTables(*database.source);

  const Gateway gateway = StartGateway(binary, source_url);
  const auto client = Must(sluice::server::GatewayClient::Connect({gateway.address, "", "bench"}));
  SilentSink sink;
  const auto run = [&](const char* sql) { Must(client->Run(sql, {}, sink)); };
  run(kTrain);
  run(kPredict);
  Show("TRAIN iris (110 rows, 10 epochs), gRPC", MedianMilliseconds(21, [&] { run(kTrain); }), 100);
  run(kTrainOnce);
  Show("TRAIN DNNClassifier (1,000 rows, 1 epoch), gRPC",
       MedianMilliseconds(21, [&] { run(kTrainOnce); }), 100);
  Show("PREDICT 1,000 rows, gRPC", MedianMilliseconds(21, [&] { run(kPredict); }), 50);
  Show("SELECT 1, gRPC", MedianMilliseconds(101, [&] { run("SELECT 1;"); }), 10);
  kill(gateway.pid, SIGTERM);
  waitpid(gateway.pid, nullptr, 0);

  Show("parse the TRAIN", MedianMilliseconds(201, [] { Must(sluice::parser::Parse(kTrain)); }), 1);
  ShowPlanning(*database.source, database.catalog->models());
  database = {};
  std::filesystem::remove_all(folder);
  return 0;
}
