#pragma once

#include <sys/types.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "catalog/catalog.h"
#include "server/gateway/gateway_client.h"
#include "tests/support/recording_sink.h"

namespace sluice::chaos {

// A handle of a process that stays valid even if the process id is reused.
class Victim {
 public:
  Victim(pid_t pid, int descriptor) : pid_(pid), descriptor_(descriptor) {}
  ~Victim();
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  pid_t pid() const { return pid_; }
  bool Alive() const;
  bool Send(int signal) const;  // false: the process is gone

 private:
  const pid_t pid_;
  const int descriptor_;
};

// `sluice serve` as a child process, and the processes that it has started. Dies with its creator.
class GatewayProcess {
 public:
  struct Options {
    std::string binary;
    std::string source;
    int slots = 8;
    std::string checkpoint_root;  // "": none
  };
  static Result<std::unique_ptr<GatewayProcess>> Start(const Options& options);
  ~GatewayProcess();
  GatewayProcess(const GatewayProcess&) = delete;
  GatewayProcess& operator=(const GatewayProcess&) = delete;

  // A session for one thread.
  Result<std::unique_ptr<server::GatewayClient>> Connect() const;
  // The living processes of all jobs of its database with this role ("worker", "ps", "master"; "":
  // any), the oldest first.
  std::vector<std::shared_ptr<const Victim>> Processes(const std::string& role) const;

 private:
  GatewayProcess(pid_t pid, std::string address, std::unique_ptr<catalog::Catalog> catalog);
  // The processes that start those of jobs: the gateway, and jobs' own processes.
  std::set<pid_t> Parents() const EXCLUDES(mutex_);

  const pid_t pid_;
  const std::string address_;
  const std::unique_ptr<catalog::Catalog> catalog_;
  mutable Mutex mutex_;
  mutable std::set<pid_t> parents_ GUARDED_BY(mutex_);  // as last known
};

// Runs one statement and returns its answer.
Result<RecordingSink> Ask(server::GatewayClient& client, const std::string& sql,
                          std::stop_token stop = {});

}  // namespace sluice::chaos
