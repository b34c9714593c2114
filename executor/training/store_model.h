#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "catalog/model_store.h"

namespace sluice::executor {

// How long a finished training waits for its database, and where it reports that.
struct StorePatience {
  double away_seconds = 60;     // for a database that cannot be reached, or has no connection left
  double locked_seconds = 600;  // for one that another session has locked
  std::stop_token stop;         // ends the wait, with nothing stored (57014)
  std::function<void(const std::string&)> tell;  // a line for a person, once; may be empty
};

// Stores a model and ends its job (ModelStore::PutAndEnd). A training is not thrown away because
// its database is locked or unreachable: it retries, and holds no locks or connections meanwhile. A
// connection lost at COMMIT leaves the outcome unknown; if it was stored, the next try is
// IsJobOver.
Status StoreModel(catalog::ModelStore& models, const catalog::ModelVersion& version,
                  std::string_view weights, bool must_be_new, const catalog::EndOfJob& end,
                  const StorePatience& patience);

// The version of that model stored by job `job`.
Result<std::optional<catalog::ModelVersion>> FindStored(catalog::ModelStore& models,
                                                        const std::string& schema,
                                                        const std::string& name, int64_t job);

}  // namespace sluice::executor
