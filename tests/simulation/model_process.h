#pragma once

#include <functional>
#include <memory>
#include <string>

#include "elastic/rpc/links.h"

namespace sluice::elastic::simulation {

class Simulation;

// A process of a simulated job without threads and sockets: it runs on virtual time, and its
// messages are lost, duplicated, delayed, or overtake each other. It may be killed, suspended for a
// while, or cut off from its master.
class ModelProcess : public std::enable_shared_from_this<ModelProcess> {
 public:
  ModelProcess(Simulation& job, std::string name, Incarnation incarnation, double slowness);
  virtual ~ModelProcess() = default;

  void Pause(double until) { paused_until_ = until; }
  void CutOff(double until) { cut_off_until_ = until; }
  void Kill() { alive_ = false; }
  bool alive() const { return alive_; }
  const std::string& name() const { return name_; }

 protected:
  using Then = std::function<void()>;
  // Runs on the other side; its result runs here when the answer arrives. Null: no answer.
  using Serve = std::function<Then()>;

  void Sleep(double seconds, const Then& then);
  // Repeats a call until it is answered, for 30 s.
  void Call(bool to_master, const Serve& serve);
  void Exit(const std::string& why, bool ok);
  // Starts the heartbeat.
  void Beat();

  Simulation& job_;
  const Incarnation incarnation_;
  const double slowness_;

 private:
  bool CutOff() const;
  // Runs here, or later if the process is suspended.
  void Run(const Then& then);
  void Attempt(bool to_master, const Serve& serve, uint64_t call, double give_up);

  const std::string name_;
  const int64_t life_;  // of the job: its messages do not reach processes of a later life
  bool alive_ = true;
  double paused_until_ = 0;
  double cut_off_until_ = 0;
  uint64_t call_ = 0;  // the call that is waited for
};

}  // namespace sluice::elastic::simulation
