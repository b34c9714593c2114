#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "catalog/job_store.h"

namespace sluice::catalog {

// One version of a model, without its weights.
struct ModelVersion {
  std::string schema;  // "" = the source's default
  std::string name;
  int64_t version = 0;    // 1, 2, ...
  bool live = false;      // what `m` without a version means
  std::string type;       // "DNNClassifier", "xgboost.gbtree"
  std::string owner;      // a role, where List has it
  std::string statement;  // the SQL that made it
  std::string plan;       // serialised plan::TrainPlan: features, model, seed
  std::vector<std::pair<std::string, double>> metrics;
  int64_t job = 0;
  int64_t rows = 0;            // rows trained, all epochs
  int64_t rows_per_epoch = 0;  // read from the lineage; `rows` if missing there
  std::string lineage;         // JSON: snapshot, seed, skipped ranges, library versions
  std::string weights_sha256;  // hex
  int64_t weights_bytes = 0;
  int64_t created_micros = 0;  // wall clock
};

// How the job that made a model ends (JobStore::End), once the version's number is known.
using EndOfJob = std::function<Job(const ModelVersion& stored)>;

// How much of what can be made again is kept.
struct KeepLimits {
  int64_t versions = 0;
  int64_t bytes = 0;
  int64_t spared_micros = 0;  // what was used in this time stays, whatever the limits
};

// What an owner may grant of a model. INSPECT is all that is to be seen of it, and includes its
// use: its plan, whose vocabularies are values of rows, its statement with the literals, and its
// weights. Who may use a model type sees its source.
enum class ModelRight : int { kUsage, kInspect };
struct ModelRights {
  bool usage = false;
  bool inspect = false;
};

// Tables sluice.models, sluice.model_versions, sluice.model_chunks (on SQLite: sluice_models ...);
// of model types sluice.model_types, sluice.model_type_versions, sluice.model_type_chunks.
// They are created on first use. A model that the catalog's principal may not see appears not to
// exist; for one that it may only use, Put, PutAndEnd, Promote, Rollback, Drop, Rename and the
// grants return 42501 (Catalog). Thread-safe.
class ModelStore {
 public:
  virtual ~ModelStore() = default;

  // Stores `weights` in chunks and the version row, and makes it live, in one transaction: all of
  // it or nothing. `model.version`, `live`, `created_micros` and the checksum are filled in and
  // returned. `must_be_new`: an existing model of that name is AlreadyExists. A new model belongs
  // to the principal.
  virtual Result<ModelVersion> Put(ModelVersion model, std::string_view weights,
                                   bool must_be_new) = 0;
  // As Put, and ends the job in the same transaction: both or neither. IsJobOver: the job has ended
  // already, or another process runs it. `end` may be called more than once.
  virtual Result<ModelVersion> PutAndEnd(ModelVersion model, std::string_view weights,
                                         bool must_be_new, const EndOfJob& end) = 0;
  // The live version, or the one asked for. NotFound names the nearest model. kInspect: 42501 for a
  // principal that may only use the model. Who asks for kUsage must not show the plan or the
  // statement to anybody.
  virtual Result<ModelVersion> FindFor(ModelRight right, std::string_view schema,
                                       std::string_view name, std::optional<int64_t> version) = 0;
  Result<ModelVersion> Find(std::string_view schema, std::string_view name,
                            std::optional<int64_t> version) {
    return FindFor(ModelRight::kInspect, schema, name, version);
  }
  // The weights, checked against their checksum.
  virtual Result<std::string> LoadWeights(const ModelVersion& model) = 0;
  // Live versions, without plans. What the principal may only use comes without statement and
  // lineage, as from Versions.
  virtual Result<std::vector<ModelVersion>> List() = 0;
  // Notes that `used` was used now (created_micros), and drops what exceeds the limits in its
  // schema, of what the principal owns: what was used longest ago first. Stays: what a job that has
  // not ended begins with (compiled_types.h).
  virtual Status KeepLatest(const ModelVersion& used, const KeepLimits& limits) = 0;
  virtual Result<std::vector<ModelVersion>> Versions(std::string_view schema,
                                                     std::string_view name) = 0;
  virtual Status Promote(std::string_view schema, std::string_view name, int64_t version) = 0;
  virtual Status Rollback(std::string_view schema,
                          std::string_view name) = 0;  // the one before live
  // One version, or all of them. If the live version is dropped, the newest becomes live; without
  // any version the model is gone.
  virtual Status Drop(std::string_view schema, std::string_view name,
                      std::optional<int64_t> version) = 0;
  // All versions, with owner and users. AlreadyExists if a model has the new name. Weights of a
  // version found by the old name can still be loaded.
  virtual Status Rename(std::string_view schema, std::string_view name, std::string_view new_schema,
                        std::string_view new_name) = 0;
  // Before anything is trained: the error that Put would return because the model of that name
  // belongs to another role (42501); or 53400: the model has as many versions, or its owner has
  // stored as much, as Catalog::LimitRoles allows. (Put does not look at those limits, so that what
  // was trained is stored.)
  virtual Status CheckMayPut(std::string_view schema, std::string_view name) = 0;
  // Gives these rights to the members of `roles`, or revokes them; "public" means every role.
  // 42704: no such role. 0A000: a database without roles.
  virtual Status Grant(std::string_view schema, std::string_view name,
                       const std::vector<std::string>& roles, const ModelRights& rights) = 0;
  virtual Status Revoke(std::string_view schema, std::string_view name,
                        const std::vector<std::string>& roles, const ModelRights& rights) = 0;
};

}  // namespace sluice::catalog
