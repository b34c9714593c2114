#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "catalog/embedded_session.h"

namespace sluice::catalog {

// The two catalogs of one schema, serialised as SQLite database files.
struct PgImage {
  std::string pg_catalog;
  std::string information_schema;
};

// Making them takes longer than most queries of them, so the sessions of a database share them.
class SharedCatalogs {
 public:
  // nullptr: there is none with that key (SqlitePgCatalog::SchemaKey).
  std::shared_ptr<const PgImage> Find(std::string_view key) EXCLUDES(mutex_);
  void Keep(std::string key, std::shared_ptr<const PgImage> image) EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  // In the order of their last use.
  std::vector<std::pair<std::string, std::shared_ptr<const PgImage>>> images_ GUARDED_BY(mutex_);
};

}  // namespace sluice::catalog
