// A lower bound for training from SQL: one hand-written loop that reads a PostgreSQL table from the
// socket, turns rows into numbers and trains one epoch, without plan, checks or checkpoints. Prints
// its seconds and AUC (on every tenth row, which it does not train) next to those of `sluice sql`
// over the same table, interleaved. Nine of ten rows are trained by both. Usage: plain_loop URL
// TABLE LABEL [path of sluice] [rounds]. Built for this machine's processor.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "bench/plain_models.h"
#include "bench/plain_reader.h"

namespace sluice::plain {
namespace {

// Score and label of each held-out row.
template <typename Model>
std::vector<std::pair<float, float>> Train(const Table& table, int64_t first_page,
                                           int64_t last_page) {
  PGconn* connection = PQconnectdb(table.url.c_str());
  if (PQstatus(connection) != CONNECTION_OK) {
    Fail(PQerrorMessage(connection));
  }
  Model model(table.columns.size());
  std::vector<std::pair<float, float>> scored;
  Row row;
  std::vector<Row> held;
  int64_t count = 0;
  Read(connection,
       "SELECT * FROM " + table.name + " WHERE ctid >= '(" + std::to_string(first_page) +
           ",0)' AND ctid < '(" + std::to_string(last_page) + ",0)'",
       [&](const char* body) {
         Parse(table, body, &row);
         if (++count % 10 == 0) {
           held.push_back(row);
           return;
         }
         const float probability = 1 / (1 + std::exp(-model.Score(row)));
         model.Learn(row, probability - row.label);
       });
  for (const Row& one : held) {
    scored.emplace_back(model.Score(one), one.label);
  }
  PQfinish(connection);
  return scored;
}

double Auc(std::vector<std::pair<float, float>> scored) {
  std::sort(scored.begin(), scored.end());
  double below = 0, pairs = 0, positives = 0;
  for (const auto& [score, label] : scored) {
    pairs += label > 0 ? below : 0;
    positives += label;
    below += 1 - label;
  }
  return pairs / (positives * below);
}

// Means, deviations and which columns are numeric, from the first rows.
Table Look(const std::string& url, const std::string& name, const std::string& label) {
  Table table{.url = url, .name = name};
  PGconn* connection = PQconnectdb(url.c_str());
  PGresult* rows = PQexec(connection, ("SELECT * FROM " + name + " LIMIT 5000").c_str());
  if (PQresultStatus(rows) != PGRES_TUPLES_OK) {
    Fail(PQerrorMessage(connection));
  }
  table.label = static_cast<size_t>(PQfnumber(rows, label.c_str()));
  for (int i = 0; i < PQnfields(rows); ++i) {
    const Oid type = PQftype(rows, i);
    Column column{.number = type == 20 || type == 21 || type == 23 || type == 700 || type == 701};
    double sum = 0, squares = 0;
    for (int j = 0; column.number && j < PQntuples(rows); ++j) {
      const double number = std::atof(PQgetvalue(rows, j, i));
      sum += number;
      squares += number * number;
    }
    const double count = std::max(1, PQntuples(rows));
    column.mean = static_cast<float>(sum / count);
    column.scale = static_cast<float>(
        1 / std::sqrt(std::max(squares / count - sum / count * (sum / count), 1e-12)));
    table.columns.push_back(column);
  }
  for (int j = 0; j < PQntuples(rows); ++j) {
    table.positive =
        std::max(table.positive, std::string(PQgetvalue(rows, j, PQfnumber(rows, label.c_str()))));
  }
  PQclear(rows);
  rows = PQexec(connection, ("SELECT pg_relation_size('" + name + "') / 8192").c_str());
  table.pages = std::atoll(PQgetvalue(rows, 0, 0));
  PQclear(rows);
  PQfinish(connection);
  return table;
}

// Seconds of the loop over several connections, each with its share of the table and its own model.
template <typename Model>
double Loop(const Table& table, int connections, double* auc) {
  std::vector<std::vector<std::pair<float, float>>> scored(static_cast<size_t>(connections));
  const double seconds = Seconds([&] {
    std::vector<std::jthread> threads;
    for (int i = 0; i < connections; ++i) {
      threads.emplace_back([&, i] {
        scored[static_cast<size_t>(i)] =
            Train<Model>(table, table.pages * i / connections, table.pages * (i + 1) / connections);
      });
    }
  });
  for (size_t i = 1; i < scored.size(); ++i) {
    scored[0].insert(scored[0].end(), scored[i].begin(), scored[i].end());
  }
  *auc = Auc(std::move(scored[0]));
  return seconds;
}

template <typename Model>
void Compare(const Table& table, const std::string& label, const char* name, const char* type,
             const std::string& sluice, int rounds) {
  const std::string command = sluice + " sql --source '" + table.url + "' -c \"SELECT * FROM " +
                              table.name + " TO TRAIN " + type +
                              "train.epoch=1, split.fraction=0.1 LABEL " + label +
                              " INTO plain_loop_model\" >/dev/null 2>&1";
  std::array<std::vector<double>, 3> seconds;
  std::array<double, 2> auc{};
  for (int round = 0; round < rounds; ++round) {
    seconds[0].push_back(Loop<Model>(table, 1, &auc[0]));
    seconds[1].push_back(Loop<Model>(table, 2, &auc[1]));
    seconds[2].push_back(Seconds([&] {
      if (std::system(command.c_str()) != 0) {
        Fail(command.c_str());
      }
    }));
  }
  const double limit = Median(seconds[0]);
  const double sluice_seconds = Median(seconds[2]);
  std::printf("%-8s one connection %6.2f s  AUC %.4f\n", name, limit, auc[0]);
  std::printf("%-8s two            %6.2f s  AUC %.4f\n", name, Median(seconds[1]), auc[1]);
  std::printf("%-8s sluice sql     %6.2f s  %.2f of one connection\n", name, sluice_seconds,
              sluice_seconds / limit);
}

}  // namespace
}  // namespace sluice::plain

int main(int argc, char** argv) {
  using namespace sluice::plain;
  if (argc < 4) {
    Fail("usage: plain_loop URL TABLE LABEL [path of sluice] [rounds]");
  }
  const std::string sluice = argc > 4 ? argv[4] : SLUICE_BINARY;
  const int rounds = argc > 5 ? std::atoi(argv[5]) : 5;
  const Table table = Look(argv[1], argv[2], argv[3]);
  Compare<Linear>(table, argv[3], "linear", "LinearClassifier WITH ", sluice, rounds);
  Compare<Network>(table, argv[3], "network",
                   "DNNClassifier WITH model.hidden_units=[64, 32], train.batch_size=256, ", sluice,
                   rounds);
  Compare<DeepFm>(table, argv[3], "DeepFM",
                  "DeepFMClassifier WITH model.hidden_units=[64, 32], train.batch_size=256, ",
                  sluice, rounds);
  return 0;
}
