#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::executor {

class ResultRows;
class ResultSink;

// The bytes in which a job's answer is kept (catalog::JobStore::Answer), and travels from the job's
// process to whoever waits for it.
std::string AnswerBytes(const ResultRows& rows, std::string_view tag);
// Of a job that runs: the columns that it will answer with.
std::string AnswerBytes(const Schema& columns);
// Of one that has failed, or was cancelled.
std::string AnswerBytes(const Status& failed);

// Sends the rows and the tag; the job's error, as it was told, where it has failed.
Status SendAnswer(const std::string& bytes, ResultSink& sink);
// No columns: none are known.
Schema ColumnsOfAnswer(const std::string& bytes);
// OK of one that has not failed.
Status ErrorOfAnswer(const std::string& bytes);

// The same answer, with what the job's client should know, by the time of each.
std::string WithNotices(std::string bytes, const std::map<int64_t, std::string>& notices);
std::map<int64_t, std::string> NoticesOfAnswer(const std::string& bytes);

}  // namespace sluice::executor
