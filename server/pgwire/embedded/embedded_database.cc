#include <algorithm>
#include <boost/asio/post.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "server/pgwire/embedded/embedded_link_internal.h"
#include "server/pgwire/password_file.h"
#include "server/pgwire/ready_sockets_internal.h"

// What the sessions over one embedded database share.
namespace sluice::server::pgwire {
namespace {

// Statements that run at the same time; further ones wait for a thread.
constexpr unsigned kLeastThreads = 8;

unsigned Threads() {
  return std::max(kLeastThreads, 2 * std::thread::hardware_concurrency());
}

}  // namespace

EmbeddedDatabase::EmbeddedDatabase(boost::asio::io_context& context, std::string url,
                                   std::string password_file, Audit& audit)
    : context_(context),
      url_(std::move(url)),
      password_file_(std::move(password_file)),
      audit_(audit),
      turns_(Threads()),
      threads_(Threads()) {}

EmbeddedDatabase::~EmbeddedDatabase() {
  threads_.join();
}

FairTurns::Ticket EmbeddedDatabase::Run(const std::string& user, Work work) {
  const FairTurns::Ticket ticket =
      turns_.Wait(user, [this, work = std::move(work)](const std::string& whose) mutable {
        boost::asio::post(threads_, [this, whose, work = std::move(work)] {
          ReadySockets::Post(context_, [this, whose, then = work()] {
            turns_.End(whose);
            then();
            RunNext();
          });
        });
      });
  RunNext();
  return ticket;
}

bool EmbeddedDatabase::Hurry(const std::string& user, FairTurns::Ticket ticket) {
  const bool waits = turns_.Move(user, ticket, kShort);
  if (waits) {
    ReadySockets::Post(context_, [this] { RunNext(); });
  }
  return waits;
}

void EmbeddedDatabase::RunNext() {
  while (std::optional<FairTurns::Turn> next = turns_.Next()) {
    next->work(next->user);
  }
}

std::shared_ptr<catalog::MemoryAccount> EmbeddedDatabase::MemoryOf(const std::string& user) {
  std::erase_if(memory_, [](const auto& of) { return of.second.expired(); });
  std::shared_ptr<catalog::MemoryAccount> account = memory_[user].lock();
  if (account == nullptr) {
    account = catalog::MemoryAccount::Open();
    memory_[user] = account;
  }
  return account;
}

std::vector<std::string> EmbeddedDatabase::Users() const {
  Result<std::vector<std::string>> users =
      password_file_.empty() ? std::vector<std::string>() : UsersOf(password_file_);
  return users.ok() ? *std::move(users) : std::vector<std::string>();
}

}  // namespace sluice::server::pgwire
