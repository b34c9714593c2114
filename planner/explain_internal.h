#pragma once

#include <string>
#include <vector>

#include "models/model.pb.h"
#include "planner/explain.h"
#include "planner/plan.pb.h"

// Phrases shared by the text and the JSON of EXPLAIN; only explain*.cc include this.
namespace sluice::planner {

struct FeatureLine {
  std::string name;
  std::string reads;  // "age (bigint)"
  std::string how;    // "numeric, standardised (38.58 +- 13.64)"
};
FeatureLine DescribeFeature(const models::Feature& feature, const models::FeaturePlan& plan);

// A description of a graph network for people: the first sixty lines of each kind.
struct GraphLines {
  std::vector<std::string>
      layers;  // "deep/0: Gemm, Relu"; nodes that read a table are listed separately
  std::vector<std::string> parameters;  // "deep/0/kernel: [429, 64], glorot_uniform"
  std::vector<std::string> tables;      // "embedding/city: 1,000 rows of 17, normal:0.01"
  int64_t operators = 0;                // without constants
  int64_t numbers = 0;                  // of the parameters
  int64_t rows = 0;                     // of the tables
};
GraphLines DescribeGraph(const models::NetworkGraph& graph);

// "9 values: Private, Self-emp-not-inc, ..., 1 more"
std::string DescribeValues(const google::protobuf::RepeatedPtrField<std::string>& values,
                           std::string_view noun);
std::string DescribeLabel(const models::LabelPlan& label);
std::string DescribeOptimizer(const models::OptimizerSpec& optimizer);
std::string DescribeSplitColumns(const plan::Split& split);
std::string DescribeSplit(const plan::Split& split);
// "/checkpoints/m every 100 steps, 5 kept"
std::string DescribeCheckpoints(const plan::Checkpoints& checkpoints);
bool AddsUp(const plan::Strategy& strategy);
std::string DescribeStrategy(const plan::Strategy& strategy);
// Which processes a training may lose and still continue, and what happens beyond that; "" in one
// process.
std::string DescribeSurvival(const plan::TrainPlan& plan);
// How much of the model is the same when the statement is repeated; "" in one process.
std::string DescribeRepetition(const plan::Strategy& strategy);
// The table as the user named it.
std::string ResultName(const plan::ResultTable& table);
// "make", "refill", "replace", "append"
std::string ResultActionName(const plan::ResultTable& table);
// "table p, refilled in one step"
std::string DescribeResult(const plan::ResultTable& table);
std::string ModelNameOf(const std::string& schema, const std::string& name, int64_t version);

}  // namespace sluice::planner
