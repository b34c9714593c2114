#include <utility>

#include "base/guarded.h"
#include "server/pgwire/digests_internal.h"
#include "server/pgwire/random_internal.h"
#include "server/pgwire/session_internal.h"
#include "server/pgwire/wire_sink.h"

// What a session does with statements of ours: they run elsewhere, and may borrow its back end.
namespace sluice::server::pgwire {

StatementRequest WireSession::RequestOf(const OwnStatement& statement, bool transaction) {
  stop_ = std::stop_source();
  StatementRequest request;
  request.statement = statement;
  request.login = login_;
  request.transaction = transaction;
  request.stop = stop_.get_token();
  request.gone = gone_.get_token();
  EndLoan();
  if (embedded_ != nullptr) {
    return request;  // only a server's back end can be borrowed
  }
  token_ = RandomToken();
  house_.loans[Sha256Of(token_)] = this;
  request.session = house_.link;
  request.session.token = token_;
  return request;
}

void WireSession::Run(const OwnStatement& statement, bool transaction) {
  const std::weak_ptr<WireSession> weak = weak_from_this();
  ClientLine::Post post = [&context = house_.context](std::function<void()> work) {
    ReadySockets::Post(context, std::move(work));
  };
  ClientLine::Client client;
  client.says = [weak](const std::string& bytes) {
    const auto self = weak.lock();
    if (self == nullptr || self->state_ == State::kClosed || self->line_ == nullptr) {
      return;
    }
    self->conversation_->Says(bytes);
    self->LowerKept();
    if (self->writing_client_) {
      self->to_take_ += bytes.size();
    } else if (self->line_ != nullptr) {
      self->line_->Taken(bytes.size());
    }
  };
  client.suspended = [weak] {
    const auto self = weak.lock();
    if (self != nullptr && self->state_ == State::kTalking && self->line_ != nullptr) {
      self->EndLoan();
      self->conversation_->Suspended();
    }
  };
  to_take_ = 0;
  line_ = std::make_shared<ClientLine>(post, std::move(client));
  WireSink::Options options;
  options.describe_rows = statement.describe_rows;
  options.result_formats = statement.result_formats;
  options.max_rows = statement.max_rows;
  options.encoding = statement.encoding;
  options.described = statement.described;
  const auto sink = std::make_shared<WireSink>(line_, std::move(options));
  const auto ended = [weak, line = line_, post](const Status& status) {
    post([weak, line, status] {
      const auto self = weak.lock();
      if (self == nullptr || self->line_ != line) {
        return;  // given up, or the client is gone
      }
      self->line_.reset();
      self->EndLoan();
      self->conversation_->Ended(status);
      self->LowerKept();
      self->WaitForClient();
    });
  };
  BeforeOwn(RequestOf(statement, transaction),
            [weak, sink, ended](const Status& status, StatementRequest request) {
              const auto self = weak.lock();
              if (self == nullptr || !status.ok()) {
                ended(status);
              } else {
                self->house_.service.Run(std::move(request), sink, ended);
              }
            });
}

void WireSession::Describe(const OwnStatement& statement, bool transaction) {
  const std::weak_ptr<WireSession> weak = weak_from_this();
  const std::vector<uint16_t> formats = statement.result_formats;
  const auto described = [weak, formats, &context = house_.context](const Result<Schema>& schema) {
    const Result<std::vector<WireColumn>> columns =
        schema.ok() ? WireColumns(*schema, formats)
                    : Result<std::vector<WireColumn>>(schema.status());
    ReadySockets::Post(context, [weak, columns] {
      const auto self = weak.lock();
      if (self != nullptr && self->state_ == State::kTalking) {
        self->EndLoan();
        self->conversation_->Described(columns);
        self->WaitForClient();
      }
    });
  };
  BeforeOwn(RequestOf(statement, transaction),
            [weak, described](const Status& status, StatementRequest request) {
              const auto self = weak.lock();
              if (self == nullptr || !status.ok()) {
                described(status);
              } else {
                self->house_.service.Describe(std::move(request), described);
              }
            });
}

void WireSession::Resume(uint32_t max_rows) {
  if (line_ != nullptr) {
    line_->Resume(max_rows);
  }
}

void WireSession::GiveUp() {
  if (line_ != nullptr) {
    line_->Close();
    stop_.request_stop();
    line_.reset();
    EndLoan();
  }
}

void WireSession::FindRoute(std::string sql, std::set<std::string, std::less<>> prepared) {
  // The other thread only passes the session on: it is destroyed on this one.
  auto find = [self = shared_from_this(), &context = house_.context, sql = std::move(sql),
               prepared = std::move(prepared)]() mutable {
    std::optional<Route> route;
    const Status found = Guarded("reading a statement", [&] {
      route =
          RouteScript(sql, [&prepared](std::string_view name) { return prepared.contains(name); });
      return OkStatus();
    });
    if (!found.ok()) {
      route = Route{{}, found};
    }
    ReadySockets::Post(context, [self = std::move(self), sql = std::move(sql),
                                 route = std::move(route)]() mutable {
      if (self->state_ == State::kClosed) {
        return;
      }
      self->conversation_->Routed(std::move(sql), std::move(route));
      self->WaitForClient();
    });
    return OkStatus();
  };
  const Status queued = house_.routes.Put(std::move(find));
  if (!queued.ok()) {
    Refuse(queued);
  }
}

void WireSession::LowerKept() {
  if (kept_.has_value()) {
    kept_->Lower(conversation_->kept_bytes());
  }
}

Status WireSession::MayKeep(size_t bytes) {
  return kept_.has_value() ? kept_->Set(bytes) : OkStatus();
}

Status WireSession::CheckSetting(std::string_view set) {
  return house_.service.CheckSetting(set);
}

}  // namespace sluice::server::pgwire
