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
constexpr size_t kMostIdleSets = 4;

// One request until its answer.
struct Errand {
  const ApiRequest* request = nullptr;
  std::string path;
  int attempts = 0;
  int refusals = 0;  // 401s among them
  TimePoint due{};
  std::string body;
  std::unique_ptr<Transfer> transfer;
  std::optional<ApiAnswer> answer;      // the final one
  std::optional<ApiAnswer> last_fault;  // of the previous attempt
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
  void GiveBack(std::unique_ptr<TransferSet> set) {
    const MutexLock lock(mutex_);
    if (idle_.size() < kMostIdleSets) {
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
  std::vector<Errand> errands(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    errands[i].request = &requests[i];
    Result<std::string> path = UrlPath(requests[i]);
    if (path.ok()) {
      errands[i].path = *std::move(path);
    } else {
      errands[i].answer = ApiAnswer{Fault::kInvalid, path.status(), {}, {}};
    }
  }

  const auto finish = [&](Errand& errand, Fault fault, const std::string& why) {
    errand.transfer.reset();
    errand.answer = FailureOf(*errand.request, fault, why);
  };
  // An attempt has ended: either the request is done, or there is another attempt.
  const auto settle = [&](Errand& errand, ApiAnswer answer) {
    int attempts = errand.attempts;
    if (answer.fault == Fault::kUnauthorized) {
      credentials_.Refused(errand.transfer->login());
      attempts = ++errand.refusals;
    }
    errand.transfer.reset();
    const std::optional<double> wait =
        answer.ok() ? std::nullopt : SecondsUntilRetry(answer, attempts, connections_->Jitter());
    if (!wait || clock_.Now() + Seconds(*wait) >= deadline) {
      errand.answer = std::move(answer);
      return;
    }
    log::Debug("kubernetes call again attempts={} wait={:.1f} error={}", errand.attempts, *wait,
               answer.status.message());
    errand.due = clock_.Now() + Seconds(*wait);
    errand.last_fault = std::move(answer);
  };
  const auto begin = [&](Errand& errand) {
    ++errand.attempts;
    Result<Login> login = credentials_.Current();
    if (!login.ok()) {
      errand.answer = FailureOf(*errand.request, Fault::kUnauthorized, login.status().message());
      return;
    }
    errand.body.clear();
    errand.transfer =
        std::make_unique<Transfer>(set, credentials_.cluster(), *std::move(login), *errand.request,
                                   errand.path, [&errand](std::string_view bytes) {
                                     errand.body.append(bytes);
                                     return errand.body.size() <= kMostAnswerBytes;
                                   });
  };

  while (true) {
    const TimePoint now = clock_.Now();
    double wait = kLongestPollSeconds;
    bool open = false;
    for (Errand& errand : errands) {
      if (!errand.answer && stop.stop_requested()) {
        finish(errand, Fault::kCancelled, "cancelled");
      } else if (!errand.answer && now >= deadline) {
        finish(errand, Fault::kDeadline,
               fmt::format("no answer within {} seconds{}", options_.deadline_seconds,
                           errand.last_fault ? "; before: " + errand.last_fault->status.message()
                                             : std::string()));
      } else if (!errand.answer && errand.transfer == nullptr) {
        if (now >= errand.due) {
          begin(errand);
        } else {
          wait = std::min(wait, SecondsBetween(now, errand.due));
        }
      }
      open = open || !errand.answer;
    }
    if (!open) {
      break;
    }
    set.Turn(wait);
    CURLcode how = CURLE_OK;
    while (CURL* ended = set.TakeEnded(&how)) {
      const auto errand = std::find_if(errands.begin(), errands.end(), [ended](const Errand& each) {
        return each.transfer != nullptr && each.transfer->handle() == ended;
      });
      settle(*errand, errand->transfer->Answer(how, std::move(errand->body)));
    }
  }
  std::vector<ApiAnswer> answers;
  answers.reserve(errands.size());
  for (Errand& errand : errands) {
    answers.push_back(std::move(*errand.answer));
  }
  return answers;
}

}  // namespace sluice::k8s
