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

// A process of a job that was there before its present master.
struct LivingProcess {
  Role role = Role::kWorker;
  std::string name;
  Incarnation incarnation = kNobody;  // workers
  uint32_t server_index = 0;  // parameter servers; they register again with whoever is master
};

// Where the master of a job is reached, and everything that outlives one master process.
struct JobEndpoint {
  // The endpoint of a master that nobody succeeds, on any free port of this machine.
  JobEndpoint(std::string name) : job_name(std::move(name)) {}  // NOLINT: implicit, a name will do
  JobEndpoint(const char* name) : job_name(name) {}             // NOLINT: the same

  std::string job_name;
  // A host (any free port of it), "HOST:PORT" with "[HOST]:PORT" of IPv6, or an address that is the
  // same for every master of the job ("unix-abstract:NAME"): so the job's processes find the next
  // one.
  std::string address = "127.0.0.1";
  // Where the job's processes find its masters, whichever it is, when that is another place than
  // `address` (a Service of Kubernetes); empty: `address`.
  std::string found_at;
  // What all processes of a kind are told alike is fetched from the master, and does not travel
  // with each: whatever carries it has room for little.
  bool configures = false;
  JobKey key;  // its token of MakeJobToken; empty: made by the master
  // Grows with each master of the job. Whoever has heard of a later one refuses an earlier one.
  Term term = Term::First();
  std::vector<LivingProcess> living;
  // That the fleet grants to begin with (FleetEvent::Kind::kGranted); 0: as many as the plan says.
  uint32_t workers = 0;
};

// By which the processes of one job know each other; a stranger on the machine does not have it.
Result<std::string> MakeJobToken();

// Remembers the latest term that this process has heard of. Thread-safe.
class TermFence {
 public:
  explicit TermFence(Term term = kNoTerm) : latest_(term) {}
  Term latest() const { return latest_.load(); }
  // False: `term` is one before the latest, and whoever speaks with it has been succeeded.
  bool Admit(Term term);

 private:
  std::atomic<Term> latest_;
};

}  // namespace sluice::elastic
