#pragma once

#include <functional>
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
#include "server/statements/settings.h"
namespace sluice::catalog {
class Catalog;
}  // namespace sluice::catalog

namespace sluice::executor {
class Cluster;
}

namespace sluice::server {

// One client: who it is, which database it talks to, what it has SET. Belongs to one thread; only
// its stop token is shared.
class Session {
 public:
  // `source` is logged in as the user, `catalog` is the user's (Catalog::For). `user`: the name
  // that its jobs show. `cluster`: where its trainings start processes; null: nowhere.
  Session(catalog::DataSource& source, catalog::Catalog& catalog, std::string user,
          executor::Cluster* cluster = nullptr);

  catalog::DataSource& source() { return source_; }
  catalog::Catalog& catalog() { return catalog_; }
  const std::string& user() const { return user_; }
  executor::Cluster* cluster() const { return cluster_; }
  const planner::Options& planner_options() const { return planner_options_; }

  // Folders of checkpoints lie in this one; "": the session's trainings keep none. As long as
  // nobody says it, they may be anywhere.
  void KeepCheckpointsIn(std::string root) { planner_options_.checkpoint_root = std::move(root); }

  // SET sluice.name = value: an unknown name is told with the nearest one, a wrong value with what
  // is allowed. DEFAULT is what the session began with.
  Status Set(const parser::Name& name, const parser::AttributeValue& value);
  const SessionSettings& settings() const { return settings_; }
  // What the database's own session has SET, where the client has one; `sluice.` settings among it.
  Status TakeDatabaseSettings();
  // Who wants to know, once a statement begins, what it is told by.
  void OnSettings(std::function<void(const SessionSettings&)> hear) { hear_ = std::move(hear); }
  // The value of one of Settings() now, as SET takes it back.
  std::string Shown(const SettingSpec& setting) const;

  // The client's own transaction, of which nothing that other connections do is a part.
  void set_beside_transaction(bool open) { beside_transaction_ = open; }
  bool beside_transaction() const { return beside_transaction_; }

  // What cancels the running script (Ctrl-C, a client that went away). Set by the door before each
  // script.
  void set_stop(std::stop_token stop) { stop_ = std::move(stop); }
  const std::stop_token& stop() const { return stop_; }

  // The session is a gateway's, and what is many processes lives on without it.
  void BelongsToGateway(std::function<bool()> client_has_gone, std::function<bool()> gateway_ends) {
    client_has_gone_ = std::move(client_has_gone);
    gateway_ends_ = std::move(gateway_ends);
  }
  bool is_of_gateway() const { return static_cast<bool>(client_has_gone_); }
  // Whether that is what the stop is for.
  bool client_has_gone() const { return client_has_gone_ && client_has_gone_(); }
  bool gateway_ends() const { return gateway_ends_ && gateway_ends_(); }
  // Where the jobs that leave the session ask for room: RoomNameOf; "": nowhere.
  void set_room(std::string room) { room_ = std::move(room); }
  // So many may run at the same time, or the next one is refused (53300).
  void set_most_jobs(size_t most) { most_jobs_ = most; }
  size_t most_jobs() const { return most_jobs_; }
  const std::string& room() const { return room_; }

  // The database session that the client has open itself: the next statements see what it sees.
  void set_database_session(catalog::SessionLink link, bool in_transaction = false) {
    database_session_ = std::move(link);
    in_transaction_ = in_transaction;
  }
  // That session is inside a transaction block.
  bool in_database_transaction() const { return in_transaction_; }
  const std::optional<catalog::SessionLink>& database_session() const { return database_session_; }

 private:
  catalog::DataSource& source_;
  catalog::Catalog& catalog_;
  const std::string user_;
  executor::Cluster* const cluster_;
  planner::Options planner_options_;
  SessionSettings settings_;
  std::vector<int64_t> defaults_;  // of Settings(), in that order
  std::stop_token stop_;
  bool beside_transaction_ = false;
  std::optional<catalog::SessionLink> database_session_;
  bool in_transaction_ = false;
  std::function<void(const SessionSettings&)> hear_;
  std::function<bool()> client_has_gone_, gateway_ends_;
  std::string room_;
  size_t most_jobs_ = 32;
};

}  // namespace sluice::server
