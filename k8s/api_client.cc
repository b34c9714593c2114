#include "k8s/api_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "k8s/seconds_internal.h"
#include "k8s/transfer_internal.h"

namespace sluice::k8s {
namespace {

// Sets of connections kept for the next caller.
constexpr size_t kMaxIdleSets = 4;
// After this long without an answer on a used connection the request is sent again, on a new one: a
// proxy or a firewall that has forgotten a connection says nothing. A master's Lease is renewed in
// time all the same.
constexpr double kUsedConnectionSeconds = 4;

// One request until its answer.
struct PendingCall {
  const ApiRequest* request = nullptr;
  std::string path;
  int attempts = 0;
  int refusals = 0;  // 401s among them
  TimePoint due{};
  std::string body;
  std::unique_ptr<Transfer> transfer;
  std::optional<TimePoint> silent_since;  // on a used connection
  std::optional<ApiAnswer> answer;        // the final one
  std::optional<ApiAnswer> last_fault;    // of the previous attempt
};

}  // namespace

// Kept across calls: idle sets of connections, and the random numbers of the waits.
class ApiClient::Connections {
 public:
  explicit Connections(const ApiOptions& options)
      : most_connections_(options.most_connections), random_(options.seed) {}

  std::unique_ptr<TransferSet> Take() {
    {
      const MutexLock lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<TransferSet> set = std::move(idle_.back());
        idle_.pop_back();
        return set;
      }
    }
    return std::make_unique<TransferSet>(most_connections_);
  }
  // If one of its connections has failed, those of the other idle sets may have, too.
  void GiveBack(std::unique_ptr<TransferSet> set) {
    const MutexLock lock(mutex_);
    if (!set->trusted()) {
      idle_.clear();
    } else if (idle_.size() < kMaxIdleSets) {
      idle_.push_back(std::move(set));
    }
  }
  double Jitter() {
    const MutexLock lock(mutex_);
    return std::uniform_real_distribution<double>(0, 1)(random_);
  }

 private:
  const uint32_t most_connections_;
  Mutex mutex_;
  std::mt19937_64 random_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<TransferSet>> idle_ GUARDED_BY(mutex_);
};

ApiClient::ApiClient(Credentials& credentials, ApiOptions options, const Clock& clock)
    : credentials_(credentials),
      options_(options),
      clock_(clock),
      connections_(std::make_unique<Connections>(options)) {}

ApiClient::~ApiClient() = default;

ApiAnswer ApiClient::Call(const ApiRequest& request, const std::stop_token& stop) {
  return std::move(CallAll({request}, stop).front());
}

std::vector<ApiAnswer> ApiClient::CallAll(const std::vector<ApiRequest>& requests,
                                          const std::stop_token& stop) {
  std::unique_ptr<TransferSet> set = connections_->Take();
  std::vector<ApiAnswer> answers = Converse(*set, requests, stop);
  connections_->GiveBack(std::move(set));
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < requests.size(); ++i) {
    ++calls_[{std::string(VerbName(requests[i].verb)),
              answers[i].ok() ? "ok" : std::string(FaultName(answers[i].fault))}];
  }
  return answers;
}

ApiClient::Calls ApiClient::calls() const {
  const MutexLock lock(mutex_);
  return calls_;
}

std::vector<ApiAnswer> ApiClient::Converse(TransferSet& set,
                                           const std::vector<ApiRequest>& requests,
                                           const std::stop_token& stop) {
  const std::stop_callback wake(stop, [&set] { set.Wake(); });
  const TimePoint deadline = clock_.Now() + Seconds(options_.deadline_seconds);
  std::vector<PendingCall> calls(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    calls[i].request = &requests[i];
    Result<std::string> path = UrlPath(requests[i]);
    if (path.ok()) {
      calls[i].path = *std::move(path);
    } else {
      calls[i].answer = ApiAnswer{Fault::kInvalid, path.status(), {}, {}};
    }
  }

  const auto finish = [&](PendingCall& call, Fault fault, const std::string& why) {
    call.transfer.reset();
    call.answer = FailureOf(*call.request, fault, why);
  };
  // An attempt has ended: either the request is done, or there is another attempt.
  const auto settle = [&](PendingCall& call, ApiAnswer answer) {
    int attempts = call.attempts;
    if (answer.fault == Fault::kUnauthorized) {
      credentials_.Refused(call.transfer->login());
      attempts = ++call.refusals;
    }
    call.transfer.reset();
    if (answer.fault == Fault::kUnreachable) {
      set.Distrust();
    }
    const std::optional<double> wait =
        answer.ok() ? std::nullopt : SecondsUntilRetry(answer, attempts, connections_->Jitter());
    if (!wait || clock_.Now() + Seconds(*wait) >= deadline) {
      call.answer = std::move(answer);
      return;
    }
    log::Debug("kubernetes call again attempts={} wait={:.1f} error={}", call.attempts, *wait,
               answer.status.message());
    call.due = clock_.Now() + Seconds(*wait);
    call.last_fault = std::move(answer);
  };
  const auto begin = [&](PendingCall& call) {
    ++call.attempts;
    Result<Login> login = credentials_.Current();
    if (!login.ok()) {
      call.answer = FailureOf(*call.request, Fault::kUnauthorized, login.status().message());
      return;
    }
    call.body.clear();
    call.silent_since.reset();
    call.transfer =
        std::make_unique<Transfer>(set, credentials_.cluster(), *std::move(login), *call.request,
                                   call.path, [&call](std::string_view bytes) {
                                     call.body.append(bytes);
                                     return call.body.size() <= kMaxAnswerBytes;
                                   });
  };

  while (true) {
    const TimePoint now = clock_.Now();
    double wait = kLongestPollSeconds;
    bool open = false;
    for (PendingCall& call : calls) {
      if (!call.answer && stop.stop_requested()) {
        finish(call, Fault::kCancelled, "cancelled");
      } else if (!call.answer && now >= deadline) {
        finish(call, Fault::kDeadline,
               fmt::format("no answer within {} seconds{}", options_.deadline_seconds,
                           call.last_fault ? "; before: " + call.last_fault->status.message()
                                           : std::string()));
      } else if (!call.answer && call.transfer == nullptr) {
        if (now >= call.due) {
          begin(call);
        } else {
          wait = std::min(wait, SecondsBetween(now, call.due));
        }
      } else if (!call.answer && call.transfer->WaitsOnUsedConnection()) {
        call.silent_since = call.silent_since.value_or(now);
        if (SecondsBetween(*call.silent_since, now) >= kUsedConnectionSeconds) {
          settle(call, FailureOf(*call.request, Fault::kUnreachable,
                                 "no answer on a connection that was used before"));
        }
      }
      open = open || !call.answer;
    }
    if (!open) {
      break;
    }
    set.Turn(wait);
    CURLcode how = CURLE_OK;
    while (CURL* ended = set.TakeEnded(&how)) {
      const auto call = std::find_if(calls.begin(), calls.end(), [ended](const PendingCall& each) {
        return each.transfer != nullptr && each.transfer->handle() == ended;
      });
      settle(*call, call->transfer->Answer(how, std::move(call->body)));
    }
  }
  std::vector<ApiAnswer> answers;
  answers.reserve(calls.size());
  for (PendingCall& call : calls) {
    answers.push_back(std::move(*call.answer));
  }
  return answers;
}

}  // namespace sluice::k8s
