#include "parser/quoting.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "parser/keywords.h"
#include "parser/lexer.h"

namespace sluice::parser {
namespace {

std::string Wrap(std::string_view content, char quote, bool escape_backslash) {
  std::string text(1, quote);
  for (const char c : content) {
    if (c == quote || (escape_backslash && c == '\\')) {
      text += c;
    }
    text += c;
  }
  return text + quote;
}

bool IsDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<ModelName> ReadModelName(const Name& name) {
  ModelName model;
  model.span = name.span;
  std::vector<std::string> parts = name.parts;
  if (!name.quoted) {
    if (name.text.find('/') != std::string::npos) {
      model.name = name.text;
      return model;
    }
    // Dots after the colon belong to the tag: m:v0.1.
    const size_t colon = name.text.find(':');
    const std::string_view text = name.text;
    parts = SplitAtDots(text.substr(0, colon));
    if (colon != std::string::npos) {
      const std::string_view tag = text.substr(colon + 1);
      if (IsDigits(tag)) {
        int64_t version = 0;
        if (std::from_chars(tag.data(), tag.data() + tag.size(), version).ec != std::errc()) {
          return SyntaxError(
                     fmt::format("version {} of model '{}' is too large", tag, parts.back()))
              .At(name.span);
        }
        model.version = version;
      } else {
        parts.back() += text.substr(colon);
      }
    }
  }
  if (parts.size() > 2) {
    return SyntaxError(fmt::format("'{}' is not a model's name", name.text))
        .At(name.span)
        .Hint("a model is named [schema.]name[:version]; quote a name that holds a dot");
  }
  model.name = parts.back();
  model.schema = parts.size() == 2 ? parts.front() : "";
  return model;
}

}  // namespace

std::string Unquote(std::string_view token) {
  const char quote = token.front();
  const std::string_view body = token.substr(1, token.size() - 2);
  std::string content;
  content.reserve(body.size());
  for (size_t i = 0; i < body.size(); ++i) {
    const char next = i + 1 < body.size() ? body[i + 1] : '\0';
    if (body[i] == quote) {  // the lexer has checked that it is doubled
      ++i;
      content += quote;
    } else if (quote != '`' && body[i] == '\\' &&
               (next == '\\' || next == '"' || next == '\'' || next == 'n')) {
      ++i;
      content += next == 'n' ? '\n' : next;
    } else {
      content += body[i];
    }
  }
  return content;
}

std::string QuoteString(std::string_view content) {
  return Wrap(content, '\'', true);
}
std::string QuoteName(std::string_view content) {
  return Wrap(content, '"', true);
}
std::string BackquoteName(std::string_view content) {
  return Wrap(content, '`', false);
}

bool IsBareName(std::string_view text, bool narrow) {
  if (text.empty() || !IsNameStart(text.front()) || IsReserved(text)) {
    return false;
  }
  const Result<Token> token = Lexer(text).NextClause(narrow);
  return token.ok() && token.value().kind == Token::Kind::kWord && token.value().text == text;
}

std::vector<std::string> SplitAtDots(std::string_view text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    const size_t dot = text.find('.', begin);
    parts.emplace_back(text.substr(begin, dot == std::string_view::npos ? dot : dot - begin));
    if (dot == std::string_view::npos) {
      return parts;
    }
    begin = dot + 1;
  }
}

Result<ModelName> ToModelName(const Name& name) {
  constexpr size_t kMostBytes = 255;  // an index of the catalog holds both parts
  ASSIGN_OR_RETURN(ModelName model, ReadModelName(name));
  if (model.name.size() > kMostBytes || model.schema.size() > kMostBytes) {
    return InvalidArgument(
               fmt::format("a model's name, and its schema's, have at most {} bytes", kMostBytes))
        .SqlState("42622")
        .At(name.span);
  }
  return model;
}

}  // namespace sluice::parser
