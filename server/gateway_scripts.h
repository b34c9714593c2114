#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "executor/local_cluster.h"
#include "server/config.h"
#include "server/session.h"
#include "server/source_pool.h"
#include "server/statement.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

// The scripts that a gateway runs: admits them, gives each a session, and cancels it when its
// client goes away or the gateway ends. Both services run through it. Thread-safe.
class GatewayScripts {
 public:
  GatewayScripts(std::unique_ptr<SourcePool> sources, const Config& config);
  ~GatewayScripts();

  SourcePool& sources() { return *sources_; }

  struct Script {
    const std::string& text;
    std::string user;                                    // "": the gateway's own
    const std::vector<std::string>* settings = nullptr;  // SET statements to run beforehand
  };
  // Asked again and again, from another thread, while the script runs.
  using IsGone = std::function<bool()>;
  Status Run(const Script& script, IsGone is_gone, executor::ResultSink& sink,
             const StatementObserver& observer);

  // Stops what runs; later scripts are refused.
  void Shutdown();

 private:
  struct Running {
    IsGone is_gone;
    std::stop_source stop;
  };
  using Place = std::list<Running>::iterator;

  Result<Place> Admit(IsGone is_gone);
  void Leave(Place place);
  Status RunAdmitted(const Script& script, const std::stop_token& stop, executor::ResultSink& sink,
                     const StatementObserver& observer);
  void WatchClients(const std::stop_token& end);

  const std::unique_ptr<SourcePool> sources_;
  const std::string user_;
  const std::string checkpoint_root_;
  executor::LocalCluster cluster_;
  const size_t max_scripts_;
  Mutex mutex_;
  std::condition_variable_any script_began_;
  std::list<Running> running_ GUARDED_BY(mutex_);
  bool shut_down_ GUARDED_BY(mutex_) = false;
  std::jthread watcher_;  // last: ends before the members it uses go
};

}  // namespace sluice::server
