#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"
#include "planner/planner.h"

namespace sluice::catalog {
class Catalog;
class DataSource;
}  // namespace sluice::catalog

namespace sluice::executor {
class LocalCluster;
}

namespace sluice::server {

// One client: who it is, which database it talks to, what it has SET. Belongs to one thread; only
// its stop token is shared.
class Session {
 public:
  // `source` is logged in as the user, `catalog` is the user's (Catalog::For). `user`: the name
  // that its jobs show. `cluster`: where its trainings start processes; null: nowhere.
  Session(catalog::DataSource& source, catalog::Catalog& catalog, std::string user,
          executor::LocalCluster* cluster = nullptr);

  catalog::DataSource& source() { return source_; }
  catalog::Catalog& catalog() { return catalog_; }
  const std::string& user() const { return user_; }
  executor::LocalCluster* cluster() const { return cluster_; }
  const planner::Options& planner_options() const { return planner_options_; }

  // Folders of checkpoints lie in this one; "": the session's trainings keep none. As long as
  // nobody says it, they may be anywhere.
  void KeepCheckpointsIn(std::string root) { planner_options_.checkpoint_root = std::move(root); }

  // SET sluice.name = value: an unknown name is told with the nearest one, a wrong value with what
  // is allowed.
  Status Set(const parser::Name& name, const parser::AttributeValue& value);

  // What cancels the running script (Ctrl-C, a client that went away). Set by the door before each
  // script.
  void set_stop(std::stop_token stop) { stop_ = std::move(stop); }
  const std::stop_token& stop() const { return stop_; }

 private:
  catalog::DataSource& source_;
  catalog::Catalog& catalog_;
  const std::string user_;
  executor::LocalCluster* const cluster_;
  planner::Options planner_options_;
  std::stop_token stop_;
};

// A session variable, declared once: SET validates with it, the reference prints it.
struct SettingSpec {
  std::string name;  // "sluice.seed"
  int64_t min = 0, max = 0;
  std::string doc;
  void (*apply)(int64_t value, planner::Options& options) = nullptr;
};
const std::vector<SettingSpec>& Settings();

}  // namespace sluice::server
