// A lower bound for training from SQL: one hand-written loop that reads a PostgreSQL table from the
// socket, turns rows into numbers and trains one epoch, without plan, checks or checkpoints. Prints
// its seconds and AUC (on every tenth row, which it does not train) next to those of `sluice sql`
// over the same table, interleaved. Nine of ten rows are trained by both. Usage: plain_loop URL
// TABLE LABEL [path of sluice] [rounds]. Built for this machine's processor.
#include <libpq-fe.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/measure.h"

namespace {

constexpr int kBuckets = 4096;  // of a text column, by hash
constexpr int kUnits1 = 64, kUnits2 = 32;
constexpr float kRate = 0.02F;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "plain_loop: %s\n", what);
  std::exit(1);
}

struct Column {
  bool number = false;
  float mean = 0, scale = 1;
};
struct Table {
  std::string url, name;
  std::vector<Column> columns = {};
  size_t label = 0;
  std::string positive = {};
  int64_t pages = 0;
};
// A row as numbers: for each column, a bucket with its own weights, and the value that multiplies
// them.
struct Row {
  std::vector<uint32_t> bucket;
  std::vector<float> value;
  float label = 0;
};

class Linear {
 public:
  explicit Linear(size_t columns) : weights_(columns * kBuckets) {}
  float Score(const Row& row) {
    float sum = bias_;
    for (size_t i = 0; i < row.bucket.size(); ++i) {
      sum += weights_[row.bucket[i]] * row.value[i];
    }
    return sum;
  }
  void Learn(const Row& row, float gradient) {
    bias_ -= kRate * gradient;
    for (size_t i = 0; i < row.bucket.size(); ++i) {
      weights_[row.bucket[i]] -= kRate * gradient * row.value[i];
    }
  }

 private:
  float bias_ = 0;
  std::vector<float> weights_;
};

class Network {  // 64 and 32 units, relu; stochastic gradient descent row by row
 public:
  explicit Network(size_t columns) : first_(columns * kBuckets) {
    uint32_t seed = 1;
    const auto draw = [&seed](float deviation) {
      seed = seed * 1664525 + 1013904223;
      return (static_cast<float>(seed >> 8) / 8388608.0F - 1) * deviation;
    };
    for (auto& units : first_) {
      std::generate(units.begin(), units.end(), [&] { return draw(0.2F); });
    }
    for (auto& units : second_) {
      std::generate(units.begin(), units.end(), [&] { return draw(0.2F); });
    }
    std::generate(last_.begin(), last_.end(), [&] { return draw(0.3F); });
  }
  float Score(const Row& row) {
    h1_ = bias1_;
    for (size_t i = 0; i < row.bucket.size(); ++i) {
      for (int u = 0; u < kUnits1; ++u) {
        h1_[u] += first_[row.bucket[i]][u] * row.value[i];
      }
    }
    h2_ = bias2_;
    for (int u = 0; u < kUnits1; ++u) {
      h1_[u] = std::max(h1_[u], 0.0F);
      for (int v = 0; v < kUnits2; ++v) {
        h2_[v] += second_[u][v] * h1_[u];
      }
    }
    float sum = bias3_;
    for (int v = 0; v < kUnits2; ++v) {
      h2_[v] = std::max(h2_[v], 0.0F);
      sum += last_[v] * h2_[v];
    }
    return sum;
  }
  void Learn(const Row& row, float gradient) {  // the row that Score has just seen
    const float step = kRate * gradient;
    std::array<float, kUnits2> d2;
    for (int v = 0; v < kUnits2; ++v) {
      d2[v] = h2_[v] > 0 ? step * last_[v] : 0;
      last_[v] -= step * h2_[v];
      bias2_[v] -= d2[v];
    }
    bias3_ -= step;
    std::array<float, kUnits1> d1;
    for (int u = 0; u < kUnits1; ++u) {
      float sum = 0;
      for (int v = 0; v < kUnits2; ++v) {
        sum += second_[u][v] * d2[v];
        second_[u][v] -= h1_[u] * d2[v];
      }
      d1[u] = h1_[u] > 0 ? sum : 0;
      bias1_[u] -= d1[u];
    }
    for (size_t i = 0; i < row.bucket.size(); ++i) {
      for (int u = 0; u < kUnits1; ++u) {
        first_[row.bucket[i]][u] -= d1[u] * row.value[i];
      }
    }
  }

 private:
  std::vector<std::array<float, kUnits1>> first_;
  std::array<std::array<float, kUnits2>, kUnits1> second_;
  std::array<float, kUnits2> last_, bias2_ = {}, h2_;
  std::array<float, kUnits1> bias1_ = {}, h1_;
  float bias3_ = 0;
};

void Parse(const Table& table, const char* at, Row* row) {  // a DataRow's body, all fields as text
  row->bucket.clear();
  row->value.clear();
  const auto number16 = [&at] { return at += 2, (uint8_t(at[-2]) << 8) | uint8_t(at[-1]); };
  const int fields = number16();
  for (int i = 0; i < fields; ++i) {
    const int32_t size = static_cast<int32_t>((uint32_t(number16()) << 16) | uint32_t(number16()));
    const std::string_view text(at, size < 0 ? 0 : static_cast<size_t>(size));
    at += text.size();
    const Column& column = table.columns[static_cast<size_t>(i)];
    uint32_t bucket = 0;
    float value = size < 0 ? 0 : 1;
    if (static_cast<size_t>(i) == table.label) {
      row->label = text == table.positive ? 1 : 0;
      continue;
    }
    if (column.number) {
      double number = 0;
      std::from_chars(text.data(), text.data() + text.size(), number);
      value *= (static_cast<float>(number) - column.mean) * column.scale;
    } else {
      uint32_t hash = 2166136261U;
      for (const char c : text) {
        hash = (hash ^ uint8_t(c)) * 16777619U;
      }
      bucket = (hash ^ (hash >> 15)) % kBuckets;
    }
    row->bucket.push_back(static_cast<uint32_t>(i) * kBuckets + bucket);
    row->value.push_back(value);
  }
}

// Calls `take` with the body of each DataRow in the query's answer, read directly from the socket.
template <typename Take>
void Read(PGconn* connection, const std::string& sql, const Take& take) {
  if (PQsendQuery(connection, sql.c_str()) == 0 || PQflush(connection) != 0) {
    Fail(PQerrorMessage(connection));
  }
  std::vector<char> buffer(1 << 18);
  size_t have = 0;
  for (;;) {
    const ssize_t got =
        recv(PQsocket(connection), &buffer[have], buffer.size() - have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      continue;  // busy-wait: a sleeping client costs the server wake-ups
    }
    if (got <= 0) {
      Fail("the connection was lost");
    }
    have += static_cast<size_t>(got);
    size_t at = 0;
    while (have - at >= 5) {
      uint32_t size = 0;
      std::memcpy(&size, &buffer[at + 1], 4);
      size = __builtin_bswap32(size);
      if (have - at < size + 1) {
        break;
      }
      if (buffer[at] == 'D') {
        take(&buffer[at + 5]);
      } else if (buffer[at] == 'E') {
        Fail(&buffer[at + 5]);
      } else if (buffer[at] == 'Z') {
        return;
      }
      at += size + 1;
    }
    std::memmove(buffer.data(), &buffer[at], have - at);
    have -= at;
  }
}

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
  const double seconds = sluice::Seconds([&] {
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
    seconds[2].push_back(sluice::Seconds([&] {
      if (std::system(command.c_str()) != 0) {
        Fail(command.c_str());
      }
    }));
  }
  const double limit = sluice::Median(seconds[0]);
  std::printf("%-8s one connection %6.2f s  AUC %.4f\n", name, limit, auc[0]);
  std::printf("%-8s two            %6.2f s  AUC %.4f\n", name, sluice::Median(seconds[1]), auc[1]);
  std::printf("%-8s sluice sql     %6.2f s  %.2f of one connection\n", name,
              sluice::Median(seconds[2]), sluice::Median(seconds[2]) / limit);
}

}  // namespace

int main(int argc, char** argv) {
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
  return 0;
}
