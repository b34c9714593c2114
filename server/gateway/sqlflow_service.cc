// Include before gRPC's headers: Abseil tolerates that the annotation macros of base/mutex.h are
// already defined, but not the reverse.
#include "base/utf8.h"
#include "server/gateway/gateway_scripts.h"

#include <fmt/core.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/wrappers.pb.h>

#include <charconv>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/guarded.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "catalog/source_url.h"
#include "executor/executor.h"
#include "server/config/terminal.h"
#include "server/gateway/client_login_internal.h"
#include "server/gateway/gateway_services_internal.h"
#include "server/gateway/sqlflow.grpc.pb.h"
#include "server/statements/progress_text.h"

namespace sluice::server {
namespace {

constexpr int64_t kMicrosPerSecond = 1'000'000;

void PackCell(const RowBatch::Column& column, size_t row, google::protobuf::Any* any) {
  if (column.null[row] != 0) {
    any->PackFrom(proto::Row::Null());
    return;
  }
  switch (column.TypeAt(row)) {
    case DataType::kBool: {
      google::protobuf::BoolValue value;
      value.set_value(column.int64s[row] != 0);
      any->PackFrom(value);
      return;
    }
    case DataType::kInt64: {
      google::protobuf::Int64Value value;
      value.set_value(column.int64s[row]);
      any->PackFrom(value);
      return;
    }
    case DataType::kDouble: {
      google::protobuf::DoubleValue value;
      value.set_value(column.doubles[row]);
      any->PackFrom(value);
      return;
    }
    case DataType::kText: {
      google::protobuf::StringValue value;
      value.set_value(column.texts[row].data(), column.texts[row].size());
      any->PackFrom(value);
      return;
    }
    case DataType::kTimestamp: {
      google::protobuf::Timestamp value;
      const int64_t micros = column.int64s[row];
      const int64_t rest = ((micros % kMicrosPerSecond) + kMicrosPerSecond) % kMicrosPerSecond;
      value.set_seconds((micros - rest) / kMicrosPerSecond);
      value.set_nanos(static_cast<int32_t>(rest * 1'000));
      any->PackFrom(value);
      return;
    }
    case DataType::kBytes: {
      google::protobuf::BytesValue value;
      value.set_value(column.texts[row].data(), column.texts[row].size());
      any->PackFrom(value);
      return;
    }
  }
}

// "INSERT 0 3" -> "3 rows affected", as SQLFlow says it; "OK" where nothing was counted.
std::string AffectedText(const std::string& tag) {
  const size_t blank = tag.rfind(' ');
  int64_t count = -1;
  if (blank != std::string::npos) {
    const char* const end = tag.data() + tag.size();
    const auto parsed = std::from_chars(tag.data() + blank + 1, end, count);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      count = -1;
    }
  }
  if (count < 0) {
    return "OK";
  }
  return fmt::format("{} {} affected", count, count == 1 ? "row" : "rows");
}

// Turns a script's answers into SQLFlow's responses: head and rows, messages, and an eoe after
// every statement, because its clients drop the first response of another kind after rows.
class SqlflowSink final : public executor::ResultSink {
 public:
  explicit SqlflowSink(ClientStream& stream) : stream_(stream) {}

  Status Header(const Schema& schema) override {
    had_rows_ = true;
    schema_ = schema;
    if (!training_) {
      return SendHead();
    }
    return OkStatus();  // it comes after the message, see Rows
  }

  Status Rows(const RowBatch& batch) override {
    if (training_) {
      Notice("Evaluation result: " + TrainResult(batch));
      RETURN_IF_ERROR(SendHead());
    }
    for (size_t r = 0; r < batch.rows; ++r) {
      auto response = std::make_unique<proto::Response>();
      for (const RowBatch::Column& column : batch.columns) {
        PackCell(column, r, response->mutable_row()->add_data());
      }
      RETURN_IF_ERROR(stream_.Send(std::move(response)));
    }
    return OkStatus();
  }

  void Notice(const std::string& message) override { stream_.Notify(MessageOf(message)); }
  void Progress(const elastic::Progress& progress) override {
    stream_.Show(MessageOf(FormatProgress(progress)));
  }
  void Done(const std::string& tag) override {
    if (!had_rows_) {
      Notice(AffectedText(tag));
    }
  }

  void Started(const parser::Statement& statement) {
    training_ = std::holds_alternative<parser::TrainStatement>(statement);
    had_rows_ = false;
  }
  void Ended(std::string_view sql, double seconds) {
    auto response = std::make_unique<proto::Response>();
    response->mutable_eoe()->set_sql(sql.data(), sql.size());
    response->mutable_eoe()->set_spent_time_seconds(std::llround(seconds));
    // The result is ignored: when the client is lost, the script has been cancelled.
    std::ignore = stream_.Send(std::move(response));
  }

 private:
  static ClientStream::Message MessageOf(const std::string& text) {
    auto response = std::make_unique<proto::Response>();
    response->mutable_message()->set_message(ValidUtf8(text));
    return response;
  }
  Status SendHead() {
    auto response = std::make_unique<proto::Response>();
    proto::Head* head = response->mutable_head();  // present even without columns
    for (const ColumnInfo& column : schema_.columns) {
      head->add_column_names(column.name);
    }
    return stream_.Send(std::move(response));
  }
  std::string TrainResult(const RowBatch& batch) const {
    std::string text;
    for (size_t c = 0; c < batch.columns.size() && batch.rows > 0; ++c) {
      const RowBatch::Column& column = batch.columns[c];
      if (column.null[0] == 0) {
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", schema_.columns[c].name,
                            FormatValue(column.ValueAt(0), column.type));
      }
    }
    return text;
  }

  ClientStream& stream_;
  Schema schema_;
  bool training_ = false;
  bool had_rows_ = false;
};

Status CheckSource(const std::string& wanted, const std::string& served) {
  if (wanted.empty() || catalog::WithoutSecrets(wanted) == served) {
    return OkStatus();
  }
  // Do not repeat what the client sent: it may hold a password.
  return InvalidArgument(
             fmt::format("create DB failed: this gateway serves {} only, not the client's source",
                         served))
      .Hint("leave the client's data source empty ($SQLFLOW_DATASOURCE)");
}

// SQLFlow's clients know only the code UNKNOWN, and show its text as it is.
grpc::Status ToUnknown(const Status& status, const std::string& script) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  constexpr size_t kLongestMessage = 4'000;  // it travels in a trailer, which is limited to 8 KB
  return {grpc::StatusCode::UNKNOWN, RenderWithCaret(status, script).substr(0, kLongestMessage)};
}

// Number of events that a client has seen; the client sends back the value that it was given.
size_t SeenEvents(const proto::FetchRequest& request) {
  size_t seen = 0;
  const std::string& text = request.step_id();
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), seen);
  return parsed.ec == std::errc() ? seen : 0;
}

class SqlflowService final
    : public proto::SQLFlow::WithSplitStreamingMethod_Run<proto::SQLFlow::Service> {
 public:
  SqlflowService(GatewayScripts& scripts, FirstMessages& first, Strangers& strangers)
      : scripts_(scripts), first_(first), strangers_(strangers) {}

  grpc::Status StreamedRun(
      grpc::ServerContext* context,
      grpc::ServerSplitStreamer<proto::Request, proto::Response>* call) override {
    proto::Request message;
    const proto::Request* const request = &message;
    const auto run = [&]() -> Status {
      const bool trusted = scripts_.sources().auth() == Auth::kTrust;
      if (trusted || context->client_metadata().contains(kAuthorization)) {
        RETURN_IF_ERROR(LoginOf(*context, "").status());
      }
      RETURN_IF_ERROR(ReadRequest(context, call, first_, &message, &proto::Request::stmts));
      ASSIGN_OR_RETURN(Login login, LoginOf(*context, request->session().db_conn_str()));
      const SteadyClock clock;
      ClientStream stream(CallOf(context, call), clock, scripts_.write_seconds());
      SqlflowSink sink(stream);
      const StatementObserver observer = ObserverFor(sink);
      GatewayScripts::Client client;
      client.is_gone = [&stream] { return stream.IsGone(); };
      client.ended = [&stream](const Status&) { stream.Drain(); };
      return scripts_.Run(
          {message.stmts(), std::move(login), request->session().user_id(), nullptr}, client, sink,
          observer);
    };
    const Status status = Guarded("SQLFlow.Run", run);
    return ToUnknown(status, message.stmts());
  }

  grpc::Status Fetch(grpc::ServerContext* context, const proto::FetchRequest* request,
                     proto::FetchResponse* response) override {
    const auto fetch = [&]() -> Status {
      ASSIGN_OR_RETURN(const Login login, LoginOf(*context, ""));
      return FetchJob(*request, login, response);
    };
    return ToUnknown(Guarded("SQLFlow.Fetch", fetch), "");
  }

 private:
  // The user and password from the data source that the client names, or else from the call. All
  // scripts run on this gateway's own source, so a client that names another one gets an error.
  Result<Login> LoginOf(const grpc::ServerContext& context, const std::string& data_source) {
    ASSIGN_OR_RETURN(Login login, NamedLogin(context, data_source));
    RETURN_IF_ERROR(AdmitStranger(context, login, scripts_, strangers_));
    return login;
  }
  Result<Login> NamedLogin(const grpc::ServerContext& context, const std::string& data_source) {
    const std::string served = scripts_.served_url();
    if (scripts_.sources().auth() == Auth::kTrust) {
      RETURN_IF_ERROR(CheckSource(data_source, served));
      Login login;
      login.address = AddressOf(context.peer());
      return login;
    }
    if (!data_source.empty()) {
      return ReadSqlflowLogin(data_source, served, context.peer(), scripts_.encrypted());
    }
    return SentLogin(context, scripts_.encrypted());
  }

  // The job's events since the client's last call; eof when the job has ended.
  Status FetchJob(const proto::FetchRequest& request, const Login& login,
                  proto::FetchResponse* response) {
    ASSIGN_OR_RETURN(const int64_t id, JobOf(request));
    return scripts_.Call(login, fmt::format("WAIT JOB {}", id), id, [&](catalog::Catalog& catalog) {
      return FetchNews(request, id, catalog.jobs(), response);
    });
  }

  static Result<int64_t> JobOf(const proto::FetchRequest& request) {
    int64_t id = 0;
    const std::string& text = request.job().id();
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
      return NotFound(fmt::format("no job '{}'", text)).Hint("jobs have numbers: SHOW JOBS");
    }
    return id;
  }

  static Status FetchNews(const proto::FetchRequest& request, int64_t id, catalog::JobStore& jobs,
                          proto::FetchResponse* response) {
    ASSIGN_OR_RETURN(const catalog::Job job, jobs.Find(id));
    ASSIGN_OR_RETURN(const std::vector<catalog::JobEvent> events, jobs.Events(id));
    auto* responses = response->mutable_responses();
    for (size_t i = SeenEvents(request); i < events.size(); ++i) {
      responses->add_response()->mutable_message()->set_message(fmt::format(
          "{} {} {}", FormatTimestamp(events[i].micros), events[i].kind, events[i].detail));
    }
    *response->mutable_updated_fetch_since() = request;
    response->mutable_updated_fetch_since()->set_step_id(fmt::format("{}", events.size()));
    response->mutable_updated_fetch_since()->set_step_phase(
        std::string(catalog::JobStateName(job.state)));
    if (!catalog::HasEnded(job.state)) {
      return OkStatus();
    }
    response->set_eof(true);
    if (!job.error.empty()) {
      responses->add_response()->mutable_message()->set_message(
          fmt::format("job {} failed: {}", job.id, job.error));
    }
    auto* eoe = responses->add_response()->mutable_eoe();
    eoe->set_sql(job.statement);
    eoe->set_spent_time_seconds((job.finished_micros - job.started_micros) / kMicrosPerSecond);
    return OkStatus();
  }

  GatewayScripts& scripts_;
  FirstMessages& first_;
  Strangers& strangers_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSqlflowService(GatewayScripts& scripts, FirstMessages& first,
                                                  Strangers& strangers) {
  return std::make_unique<SqlflowService>(scripts, first, strangers);
}

}  // namespace sluice::server
