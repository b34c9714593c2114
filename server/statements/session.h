#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/data_source.h"
#include "parser/ast.h"
#include "planner/planner.h"
#include "server/statements/prepared_statements.h"
#include "server/statements/settings.h"

namespace sluice::catalog {
class Catalog;
}  // namespace sluice::catalog

namespace sluice::executor {
class Cluster;
class ScorerCache;
}  // namespace sluice::executor

namespace sluice::server {

class RoleUse;
struct StatementUse;

// What COPY FROM STDIN reads: the next piece of text; "" at the end.
using CopyInput = std::function<Result<std::string>()>;

// A client's session: its user, its database and its settings. Belongs to one thread; only its stop
// token is shared.
class Session {
 public:
  // `source` is logged in as the user, `catalog` is that of its login (Catalog::For). `user`: the
  // name
  // that its jobs show. `cluster`: where its trainings start processes; null: nowhere.
  Session(catalog::DataSource& source, catalog::Catalog& catalog, std::string user,
          executor::Cluster* cluster = nullptr);

  catalog::DataSource& source() { return source_; }
  // Of the role that the session acts as.
  catalog::Catalog& catalog() { return *acts_in_; }
  const std::string& user() const { return user_; }
  executor::Cluster* cluster() const { return cluster_; }
  const planner::Options& planner_options() const { return planner_options_; }

  // From now on catalog() is that of the role as which the session acts, which SET ROLE changes
  // (DataSource::ActingRole). To be called when a statement has begun. 25P02: in a failed
  // transaction.
  Status TakeActingRole();
  // The same for a statement that begins nothing in the database.
  Status TakeActingRoleOfSession();
  // No SET ROLE has made the session another one than its login.
  bool acts_as_login() const { return acts_in_ == &catalog_; }

  // Folders of checkpoints must lie in this one; "": the session's trainings keep none. Without
  // this call they may be anywhere.
  void KeepCheckpointsIn(std::string root) { planner_options_.checkpoint_root = std::move(root); }

  // What the session's statements may put into the pods of their jobs. Without this call anything.
  void AllowInPods(planner::PodsAllowed allowed) {
    planner_options_.pods_allowed = std::move(allowed);
  }

  // EXPORT and IMPORT name files in this folder; "": none. Without this call they may be anywhere.
  void KeepModelFilesIn(std::string root) { export_root_ = std::move(root); }
  const std::optional<std::string>& export_root() const { return export_root_; }
  // The same, with a folder for each role within them ("role-" and its id, because a role can be
  // renamed): a checkpoint, or a model's file, reveals what it has learnt.
  Status KeepFilesByRole(std::string checkpoint_root, std::string export_root);

  // Model types in Python are compiled by this program, with the rights of this process's user.
  // `contained`: only where it can be kept from all else that this user may do.
  void CompilePythonWith(std::string program, bool contained) {
    planner_options_.python.allowed = true;
    planner_options_.python.limits.contained = contained;
    planner_options_.python.program = std::move(program);
  }

  // SET sluice.name = value: the error for an unknown name suggests the nearest one, for a wrong
  // value it lists the allowed ones. DEFAULT is the value that the session began with.
  Status Set(const parser::Name& name, const parser::AttributeValue& value);
  // All of them as they were when the session began: RESET ALL.
  void ResetSettings();
  const SessionSettings& settings() const { return settings_; }
  // Takes over what is SET in the client's own database session, including `sluice.` settings: the
  // values of those names.
  static std::vector<std::string> NamesOfDatabaseSettings();
  Status TakeDatabaseSettings(const catalog::DataSource::SettingValues& values);
  // Called when a statement begins, with the settings that apply to its output.
  void OnSettings(std::function<void(const SessionSettings&)> hear) { hear_ = std::move(hear); }
  // The current value of one of Settings(), in the form that SET accepts.
  std::string Shown(const SettingSpec& setting) const;

  // The client has a transaction of its own, which does not include the work of other connections.
  void set_beside_transaction(bool open) { beside_transaction_ = open; }
  bool beside_transaction() const { return beside_transaction_; }

  // Cancels the running script (Ctrl-C, a client that has disconnected). The door sets it before
  // each script.
  void set_stop(std::stop_token stop) {
    planner_options_.python.stop = stop;
    stop_ = std::move(stop);
  }
  const std::stop_token& stop() const { return stop_; }

  // Its statements find models loaded there.
  void KeepModelsIn(std::shared_ptr<executor::ScorerCache> cache) { scorers_ = std::move(cache); }
  const std::shared_ptr<executor::ScorerCache>& scorers() const { return scorers_; }

  // Where the current statement notes what it uses; null: nobody asks.
  void set_use(StatementUse* use) { use_ = use; }
  StatementUse* use() const { return use_; }

  PreparedStatements& prepared() { return prepared_; }

  // Where COPY FROM STDIN reads; empty: nowhere.
  void set_copy_input(CopyInput input) { copy_input_ = std::move(input); }
  const CopyInput& copy_input() const { return copy_input_; }

  // The session belongs to a gateway, so jobs of many processes outlive it.
  void BelongsToGateway(std::function<bool()> client_has_gone, std::function<bool()> gateway_ends) {
    client_has_gone_ = std::move(client_has_gone);
    gateway_ends_ = std::move(gateway_ends);
  }
  bool is_of_gateway() const { return static_cast<bool>(client_has_gone_); }
  // Whether the stop was requested because the client has disconnected.
  bool client_has_gone() const { return client_has_gone_ && client_has_gone_(); }
  bool gateway_ends() const { return gateway_ends_ && gateway_ends_(); }
  // Where jobs that leave the session ask for room: RoomNameOf; "": nowhere.
  void set_room(std::string room) { room_ = std::move(room); }
  // Maximal number of jobs at the same time; a further one is refused (53300).
  void set_most_jobs(size_t most) { most_jobs_ = most; }
  size_t most_jobs() const { return most_jobs_; }
  // Its jobs count as that role's; `use` must outlive the session. null: nobody counts.
  void CountJobsFor(RoleUse* use, std::string role) {
    role_use_ = use;
    counted_role_ = std::move(role);
  }
  RoleUse* role_use() const { return role_use_; }
  const std::string& counted_role() const { return counted_role_; }
  const std::string& room() const { return room_; }

  // The client's own open database session: the next statements see what it sees.
  void set_database_session(catalog::SessionLink link, bool in_transaction = false) {
    database_session_ = std::move(link);
    in_transaction_ = in_transaction;
  }
  // That session is inside a transaction block.
  bool in_database_transaction() const { return in_transaction_; }
  const std::optional<catalog::SessionLink>& database_session() const { return database_session_; }

 private:
  Status ActAs(const std::string& role);
  Status TakeFoldersOfRole();

  catalog::DataSource& source_;
  catalog::Catalog& catalog_;                                          // of its login
  std::map<std::string, std::unique_ptr<catalog::Catalog>> catalogs_;  // of other roles, by name
  catalog::Catalog* acts_in_;
  const std::string user_;
  executor::Cluster* const cluster_;
  planner::Options planner_options_;
  std::optional<std::string> export_root_;
  bool files_by_role_ = false;
  std::string checkpoint_roots_, export_roots_;  // with the roles' folders
  SessionSettings settings_;
  std::vector<int64_t> defaults_;  // of Settings(), in that order
  std::stop_token stop_;
  bool beside_transaction_ = false;
  std::optional<catalog::SessionLink> database_session_;
  bool in_transaction_ = false;
  std::function<void(const SessionSettings&)> hear_;
  std::function<bool()> client_has_gone_, gateway_ends_;
  CopyInput copy_input_;
  PreparedStatements prepared_;
  std::string room_;
  std::shared_ptr<executor::ScorerCache> scorers_;
  size_t most_jobs_ = 32;
  RoleUse* role_use_ = nullptr;
  std::string counted_role_;
  StatementUse* use_ = nullptr;
};

}  // namespace sluice::server
