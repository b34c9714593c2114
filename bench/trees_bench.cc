// Boosted trees grown here beside libxgboost's `hist`: the same rows in memory, bins, rounds and
// depth. Seconds of the rounds alone, and from the rows to the model; medians of three runs, in
// turn.
#include <fmt/core.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/value.h"
#include "bench/measure.h"
#include "bench/must.h"
#include "models/model.pb.h"
#include "models/trees/gradient_boosting.h"

namespace sluice {
namespace {

constexpr size_t kRowsPerBatch = 8192;
constexpr int kRounds = 100, kDepth = 6, kBins = 255, kRuns = 3;

struct Table {
  std::string name;
  size_t columns = 0;
  std::vector<float> numbers;  // rows x columns
  std::vector<float> labels;   // 0 or 1
  size_t rows() const { return labels.size(); }
};

void AddLabel(double score, std::mt19937_64* random, Table* table) {
  std::uniform_real_distribution<double> uniform;
  table->labels.push_back(uniform(*random) < 1 / (1 + std::exp(-score)) ? 1 : 0);
}

// Numbers and ids of categories with the cardinalities of the census.
Table CensusLike(size_t rows, uint64_t seed) {
  constexpr int kValues[] = {74, 9, 1'400'000, 16, 16, 7, 15, 6, 5, 2, 119, 92, 99, 42};
  Table table{"census-like", std::size(kValues), {}, {}};
  std::mt19937_64 random(seed);
  for (size_t r = 0; r < rows; ++r) {
    double score = -2;
    for (size_t c = 0; c < table.columns; ++c) {
      const double u = static_cast<double>(random() >> 11U) * 0x1p-53;
      const bool rare = c == 10 || c == 11;  // gains and losses are mostly 0
      const auto value = rare && random() % 12 > 0 ? 0.0 : std::floor(u * u * kValues[c]);
      table.numbers.push_back(static_cast<float>(value));
      score +=
          (c % 3 == 0 ? 1.5 : -0.4) * std::sin(6 * value / kValues[c] + static_cast<double>(c));
      score += c == 10 && value > 60 ? 3 : 0;
    }
    AddLabel(score, &random, &table);
  }
  return table;
}

// Normal numbers that are all different.
Table HiggsLike(size_t rows, uint64_t seed) {
  Table table{"Higgs-like", 28, {}, {}};
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (size_t r = 0; r < rows; ++r) {
    double x[28];
    for (double& one : x) {
      one = normal(random);
      table.numbers.push_back(static_cast<float>(one));
    }
    AddLabel(x[0] * x[1] + std::fabs(x[2]) - x[3] + 0.5 * std::sin(3 * x[4]) - x[5] * x[6] * x[7],
             &random, &table);
  }
  return table;
}

models::FeatureBatch BatchOf(const Table& table, size_t begin, size_t end) {
  models::FeatureBatch batch;
  batch.rows = end - begin;
  batch.dense_width = table.columns;
  batch.dense.assign(table.numbers.begin() + static_cast<std::ptrdiff_t>(begin * table.columns),
                     table.numbers.begin() + static_cast<std::ptrdiff_t>(end * table.columns));
  batch.labels.assign(table.labels.begin() + static_cast<std::ptrdiff_t>(begin),
                      table.labels.begin() + static_cast<std::ptrdiff_t>(end));
  return batch;
}

double AucOf(const std::vector<double>& scores, const std::vector<float>& labels) {
  std::vector<std::pair<double, float>> sorted;
  for (size_t i = 0; i < scores.size(); ++i) {
    sorted.emplace_back(scores[i], labels[i]);
  }
  std::sort(sorted.begin(), sorted.end());
  double below = 0, area = 0;
  for (const auto& [score, label] : sorted) {
    area += label > 0 ? below : 0;
    below += label > 0 ? 0 : 1;
  }
  return area / below / (static_cast<double>(scores.size()) - below);
}

struct Run {
  double rounds = 0, whole = 0;  // seconds
  double processor = 0;          // of the whole, in all threads
  double auc = 0;
};

double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

models::ModelSpec SpecOf(const Table& table, int threads) {
  models::ModelSpec spec;
  spec.set_type("xgboost.gbtree");
  const auto set = [&spec](const char* name, int64_t value) {
    models::Attribute* attribute = spec.add_attributes();
    attribute->set_name(name);
    attribute->set_integer(value);
  };
  set("train.num_boost_round", kRounds);
  set("max_depth", kDepth);
  set("max_bin", kBins);
  set("nthread", threads);
  for (size_t c = 0; c < table.columns; ++c) {
    models::Feature* feature = spec.mutable_features()->add_features();
    feature->set_name(fmt::format("c{}", c));
    feature->add_inputs(static_cast<uint32_t>(c));
    feature->set_kind(models::Feature::NUMERIC);
    feature->set_scale(1);
    models::InputColumn* input = spec.mutable_features()->add_inputs();
    input->set_name(feature->name());
    input->set_type(static_cast<int>(DataType::kDouble));
  }
  models::LabelPlan* label = spec.mutable_features()->mutable_label();
  label->set_column("y");
  label->set_kind(models::LabelPlan::CLASS);
  label->add_classes("0");
  label->add_classes("1");
  return spec;
}

Run Ours(const Table& train, const Table& test, int threads) {
  const auto trees = Must(models::GradientBoosting::Make(SpecOf(train, threads)));
  models::FeatureBatch batch;
  size_t next = 0;
  const models::GradientBoosting::BatchSource source = {
      .next = [&]() -> Result<const models::FeatureBatch*> {
        const size_t end = std::min(next + kRowsPerBatch, train.rows());
        batch = BatchOf(train, next, end);
        next = end;
        return &batch;
      },
      .rewind =
          [&] {
            next = 0;
            return OkStatus();
          }};
  using Clock = std::chrono::steady_clock;
  Clock::time_point first, last;
  Run run;
  const double before = ProcessorSeconds();
  run.whole = Seconds([&] {
    Must(trees->Train(source, {},
                      [&](const models::GradientBoosting::Round& round) {
                        (round.round == 1 ? first : last) = Clock::now();
                      },
                      {}));
  });
  run.processor = ProcessorSeconds() - before;
  run.rounds = std::chrono::duration<double>(last - first).count();
  std::vector<double> scores;
  Must(trees->Predict(BatchOf(test, 0, test.rows()), &scores));
  run.auc = AucOf(scores, test.labels);
  return run;
}

void Check(int code) {
  if (code != 0) {
    fmt::print(stderr, "{}\n", XGBGetLastError());
    std::exit(1);
  }
}

DMatrixHandle MatrixOf(const Table& table, int threads) {
  DMatrixHandle matrix = nullptr;
  Check(XGDMatrixCreateFromMat_omp(table.numbers.data(), table.rows(), table.columns, NAN, &matrix,
                                   threads));
  Check(XGDMatrixSetFloatInfo(matrix, "label", table.labels.data(), table.rows()));
  return matrix;
}

// With the metric of the training rows as often as ours.
Run Peers(const Table& train, const Table& test, int threads) {
  Run run;
  BoosterHandle booster = nullptr;
  DMatrixHandle matrix = nullptr;
  double first = 0;
  const double before = ProcessorSeconds();
  run.whole = Seconds([&] {
    matrix = MatrixOf(train, threads);
    Check(XGBoosterCreate(&matrix, 1, &booster));
    for (const auto& [name, value] :
         std::vector<std::pair<const char*, std::string>>{{"tree_method", "hist"},
                                                          {"objective", "binary:logistic"},
                                                          {"max_depth", std::to_string(kDepth)},
                                                          {"max_bin", std::to_string(kBins)},
                                                          {"nthread", std::to_string(threads)}}) {
      Check(XGBoosterSetParam(booster, name, value.c_str()));
    }
    const auto interval = static_cast<int>(train.rows() / 100'000) + 1;
    const char* names = "train";
    const char* line = nullptr;
    const auto round = [&](int i) {
      Check(XGBoosterUpdateOneIter(booster, i, matrix));
      if (i % interval == 0 || i + 1 == kRounds) {
        Check(XGBoosterEvalOneIter(booster, i, &matrix, &names, 1, &line));
      }
    };
    round(0);
    first = Seconds([&] {
      for (int i = 1; i < kRounds; ++i) {
        round(i);
      }
    });
  });
  run.processor = ProcessorSeconds() - before;
  run.rounds = first;
  const DMatrixHandle rows = MatrixOf(test, threads);
  bst_ulong count = 0;
  const float* scores = nullptr;
  Check(XGBoosterPredict(booster, rows, 0, 0, 0, &count, &scores));
  run.auc = AucOf({scores, scores + count}, test.labels);
  Check(XGDMatrixFree(rows));
  Check(XGDMatrixFree(matrix));
  Check(XGBoosterFree(booster));
  return run;
}

void Compare(const Table& train, const Table& test) {
  for (const int threads : {1, 2}) {
    std::vector<double> rounds[2], whole[2], processor[2];
    double auc[2] = {};
    for (int i = 0; i < kRuns; ++i) {
      const Run runs[] = {Ours(train, test, threads), Peers(train, test, threads)};
      for (int who = 0; who < 2; ++who) {
        rounds[who].push_back(runs[who].rounds);
        whole[who].push_back(runs[who].whole);
        processor[who].push_back(runs[who].processor);
        auc[who] = runs[who].auc;
      }
    }
    fmt::print(
        "{} {} x {}, {} thread{}: rounds {:.2f} s, libxgboost {:.2f} s, ratio {:.2f}; whole {:.2f} "
        "s, {:.2f} s, ratio {:.2f}; processor {:.2f} s, {:.2f} s, ratio {:.2f}; AUC {:.5f}, "
        "{:.5f}\n",
        train.name, train.rows(), train.columns, threads, threads == 1 ? "" : "s",
        Median(rounds[0]), Median(rounds[1]), Median(rounds[0]) / Median(rounds[1]),
        Median(whole[0]), Median(whole[1]), Median(whole[0]) / Median(whole[1]),
        Median(processor[0]), Median(processor[1]), Median(processor[0]) / Median(processor[1]),
        auc[0], auc[1]);
  }
}

}  // namespace
}  // namespace sluice

// trees_bench [rows]: a million by default.
int main(int count, char** arguments) {
  const size_t rows = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1'000'000;
  sluice::Compare(sluice::CensusLike(rows, 1), sluice::CensusLike(100'000, 2));
  sluice::Compare(sluice::HiggsLike(rows, 1), sluice::HiggsLike(100'000, 2));
}
