#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "elastic/ids.h"
#include "elastic/transport/job_key.h"

namespace sluice::elastic {

// A process of a job that was started before its current master.
struct RunningProcess {
  Role role = Role::kWorker;
  std::string name;
  Incarnation incarnation = kNoIncarnation;  // workers
  ServerId server_index =
      ServerId::First();  // parameter servers; they register again with each master
};

// Where the master of a job is reached, and everything that stays the same across its masters.
struct JobEndpoint {
  // The endpoint of a master without successors, on any free port of this machine.
  JobEndpoint(std::string name) : job_name(std::move(name)) {}  // NOLINT: implicit, a name will do
  JobEndpoint(const char* name) : job_name(name) {}             // NOLINT: the same

  std::string job_name;
  // A host (any free port of it), "HOST:PORT" with "[HOST]:PORT" for IPv6, or an address that is
  // the same for every master of the job ("unix-abstract:NAME"), so that the job's processes find
  // the next one.
  std::string address = "127.0.0.1";
  // Where the job's processes find the current master, if that differs from `address` (a Service of
  // Kubernetes); empty: `address`.
  std::string found_at;
  // The configuration shared by all processes of a kind is fetched from the master rather than
  // passed to each, because the means of passing it has little room.
  bool configures = false;
  JobKey key;  // its token of MakeJobToken; empty: made by the master
  // Grows with each master of the job. Processes that know a later one refuse an earlier one.
  Term term = Term::First();
  std::vector<RunningProcess> running;
  // The fleet's initial grant (FleetEvent::Kind::kGranted); 0: the plan's number.
  uint32_t workers = 0;
  // Of the workers of a job that starts over: earlier ones may still live, and are refused.
  Incarnation first_incarnation = Incarnation::First();
};

// By which the processes of one job recognise each other; a stranger on the machine does not have
// it.
Result<std::string> MakeJobToken();

// Remembers the latest term that this process has seen. Thread-safe.
class TermFence {
 public:
  explicit TermFence(Term term = kNoTerm) : latest_(term) {}
  Term latest() const { return latest_.load(); }
  // False: `term` is earlier than the latest, and its master has been succeeded.
  bool Admit(Term term);

 private:
  std::atomic<Term> latest_;
};

}  // namespace sluice::elastic
