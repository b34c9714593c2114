#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "base/status.h"
#include "parser/ast.h"
#include "planner/compile/python_models.h"
#include "planner/pods_allowed.h"

namespace sluice::catalog {
class DataSource;
class ModelStore;
struct ModelVersion;
}  // namespace sluice::catalog

namespace sluice::plan {
class Plan;
}

namespace sluice::planner {

// Settings of the session and its machine that apply to every plan.
struct Options {
  int local_cpus = 2;
  // Rows x columns x epochs below which a training stays inside the gateway's process.
  int64_t in_process_work = 2'000'000'000;
  uint64_t default_seed = 1;
  // Memory that a training may use, all its processes together.
  int64_t memory_bytes = std::numeric_limits<int64_t>::max();
  // The folder that contains all folders of checkpoints; "": there are none; nullopt: statements
  // may use any folder, with this process's rights.
  std::optional<std::string> checkpoint_root;
  // Whether jobs run on pods: engine.template and the like have an effect.
  bool pods = false;
  // What of it statements may ask for; nullopt: anything, with the rights of this process.
  std::optional<PodsAllowed> pods_allowed;
  // The role that compiled forms of model types are kept for; "": the database has none.
  std::string user_role;
  PythonOptions python;
  // Where this process will read all rows of a training, its label's classes are taken from the
  // sample (LabelPlan::classes_of_sample) instead of being queried, which would read the table once
  // more. The caller plans anew, without this, if a row has another class.
  bool classes_of_sample = false;
  // Of the statement's user; null: there are only the built-in types. Outlives the call.
  catalog::ModelStore* model_types = nullptr;
  // Called with the model that a PREDICT or an EVALUATE uses, so that who runs the plan at once
  // need not find it again; may be empty.
  std::function<void(catalog::ModelVersion)> on_model = {};
};

// Statement + catalog -> Plan: names resolved, attributes typed, features derived from statistics,
// model, split, strategy and fleet chosen where the user is silent. All errors are reported at
// once, each with its span in the script. Reads the catalog, changes nothing. SET has no plan; what
// is parsed but not implemented answers 0A000 with a hint. `models`: seen as the statement's user.
// Thread-safe.
Result<plan::Plan> MakePlan(const parser::ExtendedStatement& statement, catalog::DataSource& source,
                            catalog::ModelStore& models, const Options& options);

}  // namespace sluice::planner
