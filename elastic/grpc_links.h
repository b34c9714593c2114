#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "elastic/links.h"
#include "elastic/seat.h"

namespace sluice::elastic {

// A worker's links to processes of their own. Every call has a deadline; a call that does not get
// through is repeated with the same identity, so that it counts once however often it arrives;
// `stop` ends the repeating.
class RemoteMaster : public MasterLink {
 public:
  static std::unique_ptr<RemoteMaster> Connect(const std::string& address, const std::string& token,
                                               Incarnation worker, std::stop_token stop);
  // The parameter servers' addresses, once all have registered; empty: ask again.
  virtual Result<std::vector<std::string>> Join() = 0;
  // Thread-safe. True: the job is over.
  virtual Result<bool> Heartbeat() = 0;
  // Of a parameter server.
  virtual Status Register(const std::string& name, uint32_t index, const std::string& address) = 0;
};

std::unique_ptr<ParameterLink> ConnectParameters(const std::vector<std::string>& addresses,
                                                 const std::string& token,
                                                 const models::Network& network,
                                                 std::stop_token stop);

// The master's calls to the parameter servers, which refuse those of an earlier term.
Status KeepWeights(const std::vector<std::string>& addresses, const MasterSeat& seat);
Result<models::NetworkWeights> CollectWeights(const std::vector<std::string>& addresses,
                                              const MasterSeat& seat,
                                              const models::Network& network);
// Puts the servers' parts together: slices end to end, rows in the order of their ids.
Result<models::NetworkWeights> MergeParts(const std::vector<models::NetworkWeights>& parts,
                                          const models::Network& network);

}  // namespace sluice::elastic
