#include <gtest/gtest.h>

#include "elastic/transport/status_codec_internal.h"

namespace sluice::elastic {
namespace {

Status Travel(const Status& status) {
  StatusProto sent, received;
  ToProto(status, &sent);
  EXPECT_TRUE(received.ParseFromString(sent.SerializeAsString()));
  return FromProto(received);
}

TEST(StatusCodec, AStatusArrivesAsItIs) {
  EXPECT_TRUE(Travel(Status()).ok());
  Status status = ColumnNotFound("no column 'clss'").At({7, 11}).Detail("of t").Hint("class");
  status.Add(Unavailable("the database is away"));
  const Status arrived = Travel(status);
  ASSERT_EQ(arrived.diagnostics().size(), 2U);
  const Diagnostic& first = arrived.diagnostics()[0];
  EXPECT_EQ(first.code, Code::kNotFound);
  EXPECT_EQ(first.sqlstate, "42703");
  EXPECT_EQ(first.message, "no column 'clss'");
  EXPECT_EQ(first.span, (Span{7, 11}));
  EXPECT_EQ(first.detail, "of t");
  EXPECT_EQ(first.hint, "class");
  EXPECT_FALSE(arrived.diagnostics()[1].span.valid());
  EXPECT_EQ(arrived.ToString(), status.ToString());
}

// A server with an old encoding may send any bytes.
TEST(StatusCodec, TextsNeedNotBeUtf8) {
  EXPECT_EQ(Travel(Internal("r\xe9sum\xe9")).message(), "r\xe9sum\xe9");
}

TEST(StatusCodec, WhatIsNoErrorsNumberIsAnUnknownError) {
  for (const int code : {-1, 0, 99}) {
    StatusProto proto;
    StatusProto::Diagnostic* diagnostic = proto.add_diagnostics();
    diagnostic->set_code(code);
    diagnostic->set_sqlstate("of another length");
    diagnostic->set_message("what");
    EXPECT_EQ(FromProto(proto).code(), Code::kUnknown) << code;
    EXPECT_EQ(FromProto(proto).sqlstate(), Status(Code::kUnknown, "what").sqlstate());
  }
}

}  // namespace
}  // namespace sluice::elastic
