// A gateway that sends arbitrary data, and the shell that receives it.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "server/config/terminal.h"
#include "server/gateway/gateway.grpc.pb.h"
#include "server/gateway/gateway_client.h"
#include "server/shell/shell_sink.h"
#include "tests/server/gateway/raw_http2.h"

namespace sluice::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Updates = std::vector<v1::RunUpdate>;

class HostileService final : public v1::Gateway::Service {
 public:
  grpc::Status GetVersion(grpc::ServerContext*, const v1::GetVersionRequest*,
                          v1::GetVersionResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status Run(grpc::ServerContext*, const v1::RunRequest*,
                   grpc::ServerWriter<v1::RunUpdate>* writer) override {
    const auto [updates, for_ever] = Answer();
    do {
      for (const v1::RunUpdate& update : updates) {
        if (!writer->Write(update)) {
          return grpc::Status::OK;
        }
      }
    } while (for_ever);
    return grpc::Status::OK;
  }
  // To the calls from now on: one that its client has given up may still be answered.
  void Answer(Updates updates, bool for_ever) {
    const std::lock_guard lock(mutex_);
    updates_ = std::move(updates);
    for_ever_ = for_ever;
  }

 private:
  std::pair<Updates, bool> Answer() {
    const std::lock_guard lock(mutex_);
    return {updates_, for_ever_};
  }

  std::mutex mutex_;
  Updates updates_;
  bool for_ever_ = false;
};

class HostileGateway : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    auto client = GatewayClient::Connect({"127.0.0.1:" + std::to_string(port), "", "ann"});
    ASSERT_TRUE(client.ok()) << client.status().ToString();
    client_ = std::move(*client);
  }

  struct Shown {
    Status status;
    std::string out;
    std::string err;
  };
  // The shell's output for the updates.
  Shown Run(Updates updates, OutputFormat format = OutputFormat::kTable, bool for_ever = false) {
    service_.Answer(std::move(updates), for_ever);
    std::FILE* const out = std::tmpfile();
    std::FILE* const err = std::tmpfile();
    Shown shown;
    {
      ShellSink sink({.format = format}, {.out = out, .err = err});
      shown.status = client_->Run("SELECT 1", {}, sink);
      EXPECT_TRUE(sink.Finish().ok());
    }
    shown.out = Contents(out);
    shown.err = Contents(err);
    return shown;
  }
  static std::string Contents(std::FILE* file) {
    std::rewind(file);
    std::string text;
    char buffer[4096];
    for (size_t size = 0; (size = std::fread(buffer, 1, sizeof buffer, file)) > 0;) {
      text.append(buffer, size);
    }
    std::fclose(file);
    return text;
  }

  HostileService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<GatewayClient> client_;
};

v1::RunUpdate Header(const std::vector<int>& types) {
  v1::RunUpdate update;
  update.mutable_header();
  for (const int type : types) {
    v1::ColumnDescription* column = update.mutable_header()->add_columns();
    column->set_name("c");
    column->set_type(static_cast<v1::ColumnType>(type));
  }
  return update;
}

v1::RunUpdate Rows(int64_t count, const std::function<void(v1::Rows&)>& fill) {
  v1::RunUpdate update;
  update.mutable_rows()->set_count(count);
  fill(*update.mutable_rows());
  return update;
}

TEST_F(HostileGateway, RowsThatDoNotFitAreRefused) {
  const auto none = [](v1::Rows&) {};
  const std::vector<std::pair<std::string, Updates>> cases = {
      {"no header", {Rows(1, [](v1::Rows& rows) { rows.add_columns()->add_integers(1); })}},
      {"a header of the statement before",
       {Header({v1::BIGINT}),
        [] {
          v1::RunUpdate done;
          done.mutable_statement_done();
          return done;
        }(),
        Rows(1, [](v1::Rows& rows) { rows.add_columns()->add_integers(1); })}},
      {"fewer columns",
       {Header({v1::BIGINT, v1::TEXT}),
        Rows(1, [](v1::Rows& rows) { rows.add_columns()->add_integers(1); })}},
      {"columns of unequal length",
       {Header({v1::BIGINT, v1::BIGINT}), Rows(2,
                                               [](v1::Rows& rows) {
                                                 auto* a = rows.add_columns();
                                                 a->add_integers(1);
                                                 a->add_integers(2);
                                                 rows.add_columns()->add_integers(3);
                                               })}},
      {"a negative count", {Header({v1::BIGINT}), Rows(-1, none)}},
      {"rows for ever", {Header({}), Rows(std::numeric_limits<int64_t>::max(), none)}},
      {"a list of another type as well",
       {Header({v1::BIGINT}), Rows(1,
                                   [](v1::Rows& rows) {
                                     v1::Column* column = rows.add_columns();
                                     column->add_integers(1);
                                     for (int i = 0; i < 100'000; ++i) {
                                       column->add_doubles(0.5);
                                       column->add_texts("beyond the end");
                                     }
                                   })}},
      {"half of the NULLs",
       {Header({v1::BIGINT}), Rows(2,
                                   [](v1::Rows& rows) {
                                     v1::Column* column = rows.add_columns();
                                     column->add_integers(1);
                                     column->add_integers(2);
                                     column->set_null("\x01");
                                   })}},
      {"an unknown type", {Header({77})}},
      {"no type", {Header({v1::COLUMN_TYPE_UNSPECIFIED})}},
      {"too many columns", {Header(std::vector<int>(100'000, v1::BIGINT))}},
  };
  for (const auto& [what, updates] : cases) {
    const Shown shown = Run(updates);
    EXPECT_EQ(shown.status.code(), Code::kUnavailable) << what << shown.status.ToString();
    EXPECT_THAT(shown.status.message(), HasSubstr("the gateway sent")) << what;
  }
}

TEST_F(HostileGateway, NothingMovesTheCursor) {
  const std::string evil =
      "\x1b]0;title\x07\x1b[2J\rover\x08\x7f\xc2\x9b"
      "31m\xe2\x80\xae end";
  v1::RunUpdate notice;
  notice.set_notice(evil);
  v1::RunUpdate done;
  done.mutable_statement_done()->set_tag(evil);
  v1::RunUpdate progress;
  progress.mutable_progress()->set_rows_done(1);
  v1::Metric* metric = progress.mutable_progress()->add_metrics();
  metric->set_name(evil);
  metric->set_value(std::nan(""));
  v1::RunUpdate header = Header({v1::TEXT});
  header.mutable_header()->mutable_columns(0)->set_name(evil);
  const auto row =
      Rows(1, [&](v1::Rows& rows) { rows.add_columns()->add_texts("\xff\xc0\x80" + evil); });
  v1::RunUpdate error;
  v1::Diagnostic* diagnostic = error.mutable_error()->add_diagnostics();
  diagnostic->set_message(evil);
  diagnostic->set_sqlstate(evil);
  diagnostic->set_detail(evil);
  diagnostic->set_hint(evil);
  diagnostic->set_code(-5);
  const Shown shown = Run({notice, progress, header, row, done, done, error});
  ASSERT_FALSE(shown.status.ok());
  const std::string error_text = PrintableLines(RenderWithCaret(shown.status, "SELECT 1"));
  for (const std::string& text : {shown.out, shown.err, error_text}) {
    EXPECT_THAT(text, HasSubstr(" end"));
    for (const char* bad :
         {"\x1b", "\x07", "\x08", "\x7f", "\r", "\xc2\x9b", "\xe2\x80\xae", "\xff"}) {
      EXPECT_THAT(text, Not(HasSubstr(bad)));
    }
  }
  const Shown json = Run({header, row, done}, OutputFormat::kJson);
  EXPECT_THAT(json.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(json.out, Not(HasSubstr("\xc2\x9b")));
}

TEST_F(HostileGateway, SpansAndCodesOutOfRangeAreShownWithoutAPlace) {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  constexpr int64_t kNear = std::numeric_limits<int64_t>::min();
  for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{
           {kFar, kFar}, {kNear, kFar}, {0, kNear}, {8, 7}, {9, 10}, {7, kFar}, {-2, -3}}) {
    v1::RunUpdate error;
    v1::Diagnostic* diagnostic = error.mutable_error()->add_diagnostics();
    diagnostic->set_message("wrong");
    diagnostic->set_span_begin(begin);
    diagnostic->set_span_end(end);
    diagnostic->set_code(std::numeric_limits<int32_t>::max());
    const Shown shown = Run({error});
    EXPECT_THAT(RenderWithCaret(shown.status, "SELECT 1"), HasSubstr("wrong")) << begin;
  }
  v1::RunUpdate empty;
  empty.mutable_error();
  EXPECT_FALSE(Run({empty}).status.ok());
}

TEST_F(HostileGateway, ProgressOfAnyNumbersIsALine) {
  Updates updates;
  for (const double number : {std::nan(""), HUGE_VAL, -HUGE_VAL, 1e308, -1.0, 5e-324}) {
    for (const int64_t rows :
         {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), int64_t{-1}}) {
      v1::RunUpdate update;
      v1::Progress* progress = update.mutable_progress();
      progress->set_rows_done(rows);
      progress->set_rows_total(-1 - rows);
      progress->set_rows_per_second(number);
      progress->set_loss(number);
      progress->set_seconds_left(number);
      progress->set_workers(-1);
      progress->set_epochs(~0U);
      updates.push_back(update);
    }
  }
  EXPECT_TRUE(Run(updates).status.ok());
}

// A message with a text that is not UTF-8 cannot be parsed.
TEST_F(HostileGateway, WhatCannotBeReadIsAnError) {
  v1::RunUpdate notice;
  notice.set_notice("\xff");
  EXPECT_FALSE(Run({notice, Header({v1::TEXT})}).status.ok());
}

// What a gateway asks a session to remember is bounded, and so is what follows an error.
TEST_F(HostileGateway, NothingIsKeptForEver) {
  v1::RunUpdate setting;
  setting.set_setting_changed("SET sluice.seed = 1");
  EXPECT_EQ(Run({setting}, OutputFormat::kTable, /*for_ever=*/true).status.code(),
            Code::kResourceExhausted);
  v1::RunUpdate error;
  error.mutable_error()->add_diagnostics()->set_message("wrong");
  EXPECT_EQ(Run({error}, OutputFormat::kTable, /*for_ever=*/true).status.message(), "wrong");
}

}  // namespace
}  // namespace sluice::server
