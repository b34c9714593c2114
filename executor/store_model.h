#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "catalog/model_store.h"

namespace sluice::executor {

// How long a finished training waits for its database, and who is told of it.
struct StorePatience {
  double away_seconds = 60;     // a database that cannot be reached, or has no connection left
  double locked_seconds = 600;  // one that somebody else has locked
  std::stop_token stop;         // ends the waiting, with nothing stored (57014)
  std::function<void(const std::string&)> tell;  // a line for a person, once; may be empty
};

// Stores the model of `version.job`, as ModelStore::Put, and once: a connection that is lost at
// COMMIT says nothing about what became of it, so the model is looked for before it is stored
// again. A training is not thrown away because its database is locked or cannot be reached: it is
// asked again, holding nothing meanwhile.
Result<catalog::ModelVersion> StoreModel(catalog::ModelStore& models,
                                         const catalog::ModelVersion& version,
                                         std::string_view weights, bool must_be_new,
                                         const StorePatience& patience);

// The version of that model that job `job` has stored.
Result<std::optional<catalog::ModelVersion>> FindStored(catalog::ModelStore& models,
                                                        const std::string& schema,
                                                        const std::string& name, int64_t job);

}  // namespace sluice::executor
