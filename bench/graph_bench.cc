// What a network costs as a graph of operators: linear and DNN types trained as layers of their own,
// and by the same arithmetic written as a graph, which DNN types are where model.batch_norm is set. Processor
// time of a whole training in one process, rows read and decoded included, over the samples of
// census and clicks in SQLite; the two take turns, and the ratio is of neighbours.
// Usage: graph_bench [rows [rounds]]
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/must.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/local_job.h"
#include "models/graph/graph_builder.h"
#include "models/graph/graph_writer.h"
#include "models/model.pb.h"
#include "models/registry/registry.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "server/sample/sample.h"

namespace {

using namespace sluice;

constexpr double kGoal = 1.05;

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Case {
  const char* table;
  const char* label;
  const char* type;
  const char* attributes;
};

constexpr Case kCases[] = {
    {"census", "income", "LinearClassifier", "model.optimizer=Ftrl"},
    {"clicks", "label", "LinearClassifier", "model.optimizer=Ftrl"},
    {"census", "income", "DNNClassifier", "model.hidden_units=[64, 32]"},
    {"census", "income", "DNNLinearCombinedClassifier", "model.dnn_hidden_units=[64, 32]"},
    {"clicks", "label", "DNNClassifier", "model.hidden_units=[64, 32]"},
};

// A linear model, which is never a graph elsewhere: numbers times weights, plus the sum of the
// weights of the ids.
Result<models::NetworkGraph> BuildLinear(const std::vector<models::GraphFeature>& features,
                                         size_t outputs, const models::AttributeValues&) {
  const auto width = static_cast<int64_t>(outputs);
  models::GraphWriter writer;
  writer.SetWide(true);
  const models::GraphValue numbers = writer.Numbers(features, "numbers");
  models::GraphValue sum = numbers ? writer.Dense("linear", numbers, width, "zeros")
                                   : models::GraphValue();
  std::vector<models::GraphValue> weights;
  for (const models::GraphFeature& feature : features) {
    if (feature.category) {
      weights.push_back(writer.Embedding("weights", feature, width, "zeros"));
    }
  }
  if (!weights.empty()) {
    const auto count = static_cast<int64_t>(weights.size());
    const models::GraphValue beside = writer.Concat(weights, "weights");
    sum = writer.Add(sum, writer.SumOf(writer.Stacked(beside, count), false));
  }
  return writer.Take(sum);
}

// Processor seconds of one training; adds its figure on validation rows.
double Train(const plan::TrainPlan& plan, catalog::DataSource& source, double* auc) {
  catalog::DatasetOptions options;
  const auto dataset = Must(source.OpenDataset(plan.select(), options));
  const double before = ProcessorSeconds();
  const auto outcome =
      Must(elastic::TrainInProcess({.plan = plan, .source = source, .dataset = dataset->spec()}));
  const double spent = ProcessorSeconds() - before;
  for (const auto& metric : outcome.metrics) {
    *auc = metric.first == "auc" ? metric.second : *auc;
  }
  return spent;
}

bool Compare(const Case& of, catalog::DataSource& source, catalog::ModelStore& models, int rounds) {
  const std::string sql = fmt::format(
      "SELECT * FROM {} TO TRAIN {} WITH {}, train.epoch=1, train.batch_size=256, engine.seed=1, "
      "split.fraction=0.1 LABEL {} INTO m",
      of.table, of.type, of.attributes, of.label);
  const auto statements = Must(parser::Parse(sql));
  const plan::TrainPlan layers =
      Must(planner::MakePlan(std::get<parser::TrainStatement>(statements.at(0)), source, models, {}))
          .train();
  plan::TrainPlan graph = layers;
  const models::GraphBuilder& layered = models::FindModelType(of.type)->build_normalised;
  Must(models::BuildGraph(layered ? layered : BuildLinear, graph.mutable_model()).status());
  std::vector<double> own, as_graph, ratios;
  double own_auc = 0, graph_auc = 0;
  for (int round = 0; round < rounds; ++round) {
    own.push_back(Train(layers, source, &own_auc));
    as_graph.push_back(Train(graph, source, &graph_auc));
    ratios.push_back(as_graph.back() / own.back());
  }
  const double ratio = Median(ratios);
  fmt::print("{:<8} {:<28} {:>8.3f} s {:>8.3f} s {:>7.3f} {:>6} {:>8.4f} {:>8.4f}\n", of.table,
             of.type, Median(own), Median(as_graph), ratio, kGoal, own_auc, graph_auc);
  std::fflush(stdout);
  return ratio <= kGoal;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? std::atoll(argv[1]) : 100'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  std::string folder = (std::filesystem::temp_directory_path() / "sluice-graph-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return 1;
  }
  bool reached = true;
  {
    const catalog::Database database = Must(catalog::OpenDatabase("sqlite:" + folder + "/bench.db"));
    for (const char* table : {"census", "clicks"}) {
      const auto sample = Must(server::MakeSample(table, 1));
      Must(server::WriteSample(*sample, rows, {"", table}, *database.source, [](int64_t) {}, {})
               .status());
    }
    fmt::print("{} rows, 1 epoch, batches of 256, medians of {}, processor time\n", rows, rounds);
    fmt::print("{:<8} {:<28} {:>10} {:>10} {:>7} {:>6} {:>8} {:>8}\n", "table", "type", "layers",
               "graph", "ratio", "goal", "AUC", "graph");
    for (const Case& of : kCases) {
      reached = Compare(of, *database.source, database.catalog->models(), rounds) && reached;
    }
  }
  std::filesystem::remove_all(folder);
  return reached ? 0 : 1;
}
