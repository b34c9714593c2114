#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"

// The command-line form of train, predict and evaluate, for users of `elasticdl train --model_def
// ... --training_data ... --output ...`: flags become a statement, which is printed and then run
// like any other.
namespace sluice::server {

struct TrainForm {
  std::string model_zoo;        // folder that model_def is in; "": none
  std::string model_def;        // model type or file; "": chosen automatically
  std::string model_params;     // "hidden_units=[64,32]; n_classes=3"
  std::string training_data;    // table or SELECT
  std::string validation_data;  // table or SELECT; "": split off the training data
  std::string label;
  std::string output;  // model
  std::optional<int64_t> num_epochs;
  std::optional<int64_t> minibatch_size;
  std::optional<int64_t> num_workers;
  std::optional<int64_t> num_ps_pods;
  std::optional<int64_t> max_step;
  std::string base;  // model to continue from
};
Result<std::string> TrainStatementText(const TrainForm& form);

// What to do with an existing table that `output` names.
struct OutputForm {
  bool replace = false;  // result.replace
  bool append = false;   // result.append
};

struct PredictForm {
  std::string model;
  std::string prediction_data;  // table or SELECT
  std::string output;           // table.column; "": rows on standard output
  OutputForm output_table = {};
};
Result<std::string> PredictStatementText(const PredictForm& form);

struct EvaluateForm {
  std::string model;
  std::string validation_data;  // table or SELECT
  std::string label;            // "": the model's own
  std::string output;           // table; "": rows on standard output
  OutputForm output_table = {};
};
Result<std::string> EvaluateStatementText(const EvaluateForm& form);

}  // namespace sluice::server
