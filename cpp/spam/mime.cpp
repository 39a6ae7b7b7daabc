// Parsing of mails: headers, nested parts, encodings, as in tallybayes/apps/spam.
#include <algorithm>
#include <cstdio>

#include "spam/mail_text.h"

namespace tallybayes {

namespace {

constexpr size_t nowhere = std::string_view::npos;

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) > 127; });
}

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

// Bytes of raw from start to end, which may be empty.
std::string_view slice(std::string_view raw, size_t start, size_t end) {
  end = std::min(end, raw.size());
  return start < end ? raw.substr(start, end - start) : std::string_view();
}

bool colon_follows(std::string_view raw, size_t at) {
  while (at < raw.size() && (raw[at] == ' ' || raw[at] == '\t')) at++;
  return at < raw.size() && raw[at] == ':';
}

bool field_at(std::string_view raw, size_t at) {
  const size_t first = at;
  while (at < raw.size() && at < first + 100 && raw[at] >= '!' && raw[at] <= '~' && raw[at] != ':') at++;
  return at > first && colon_follows(raw, at);
}

bool known_field_at(std::string_view raw, size_t at) {
  static constexpr std::string_view known[] = {
      "from",     "to",       "cc",           "subject",      "date",        "received", "message-id", "return-path",
      "reply-to", "delivered-to", "mime-version", "content-type"};
  for (const std::string_view name : known) {
    if (raw.size() < at + name.size()) continue;
    const bool same = std::equal(name.begin(), name.end(), raw.begin() + static_cast<ptrdiff_t>(at), [](char a, char b) {
      return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b + 32) : b);
    });
    if (same && colon_follows(raw, at + name.size())) return true;
  }
  return false;
}

// End of the headers and start of the body.
std::pair<size_t, size_t> split_head(std::string_view raw, size_t start, size_t end) {
  raw = raw.substr(0, end);
  const std::string_view all = raw.substr(start);
  if (starts(all, "From ") || starts(all, ">From ")) {
    const size_t line = raw.find('\n', start);
    start = line == nowhere ? end : line + 1;
  }
  const std::string_view rest = raw.substr(start);
  if (starts(rest, "\n") || starts(rest, "\r\n")) return {start, raw.find('\n', start) + 1};
  if (!field_at(raw, start)) return {start, start};
  const size_t blank = raw.find("\n\n", start);
  const size_t returned = raw.substr(0, blank == nowhere ? end : blank).find("\n\r\n", start);
  if (returned != nowhere) return {returned + 1, returned + 3};
  if (blank != nowhere) return {blank + 1, blank + 2};
  if (known_field_at(raw, start)) return {end, end};
  return {start, start};
}

std::string unfolded(std::string_view head) {
  std::string found;
  found.reserve(head.size());
  for (size_t k = 0; k < head.size(); k++) {
    if (head[k] == '\r' && k + 1 < head.size() && head[k + 1] == '\n') k++;
    if (head[k] == '\n' && k + 1 < head.size() && (head[k + 1] == ' ' || head[k + 1] == '\t')) {
      found += ' ';
      k++;
    } else {
      found += head[k];
    }
  }
  return found;
}

// Starts and ends of the parts between boundaries, at most this many.
std::vector<std::pair<size_t, size_t>> places(std::string_view raw, size_t start, size_t end, const std::string& mark,
                                              size_t most) {
  std::vector<std::pair<size_t, size_t>> found;
  raw = raw.substr(0, end);
  const std::string line = "\n" + mark;
  if (!starts(slice(raw, start, end), mark)) {
    const size_t first = raw.find(line, start);
    if (first == nowhere) return found;
    start = first + 1;
  }
  while (found.size() < most) {
    const size_t after = start + mark.size(), newline = raw.find('\n', after);
    if (starts(slice(raw, after, end), "--") || newline == nowhere) break;
    const size_t first = newline + 1, last = raw.find(line, first - 1);
    if (last == nowhere) {
      found.emplace_back(first, end);
      break;
    }
    found.emplace_back(first, std::max(first, last));
    start = last + 1;
  }
  return found;
}

}  // namespace

std::string MailTokens::stripped(std::string_view value) const {
  while (!value.empty() && is_.is(value.front(), MailCharacters::space)) value.remove_prefix(1);
  while (!value.empty() && is_.is(value.back(), MailCharacters::space)) value.remove_suffix(1);
  return std::string(value);
}

std::string MailTokens::lowered(std::string_view value) const {
  std::string found(value);
  for (char& c : found) c = is_.lowered(c);
  return found;
}

std::string MailTokens::text_of(std::string_view raw, std::string_view charset) const {
  const std::string name = lowered(stripped(charset));
  const auto is_wide = [&](const std::string& start) { return starts(name, start); };
  const bool wide = std::any_of(reference_.wide.begin(), reference_.wide.end(), is_wide);
  return wide || !is_ascii(raw) ? reference_.text(raw, charset) : std::string(raw);
}

MailTokens::Headers MailTokens::fields(std::string_view head) const {
  Headers found;
  const std::string text = text_of(unfolded(head.substr(0, reference_.limits.header_bytes)), "");
  std::string_view left = text;
  for (size_t lines = 0; lines < reference_.limits.headers && left.data(); lines++) {
    const size_t end = left.find('\n');
    const std::string_view line = left.substr(0, end);
    left = end == nowhere ? std::string_view() : left.substr(end + 1);
    const size_t colon = line.find(':');
    if (colon == nowhere) continue;
    std::string_view name = line.substr(0, colon);
    while (!name.empty() && is_.is(name.back(), MailCharacters::space)) name.remove_suffix(1);
    if (name.find(' ') != nowhere) continue;
    const std::string_view value = line.substr(colon + 1);
    const bool quoted = value.find("=?") != nowhere;
    found.emplace_back(lowered(name).substr(0, 100), quoted ? reference_.unquoted(value) : std::string(value));
  }
  return found;
}

// A content type and the requested parameters.
MailTokens::ContentType MailTokens::content_type(std::string_view value) const {
  ContentType found;
  value = value.substr(0, 4000);
  const size_t semicolon = value.find(';');
  found.kind = lowered(stripped(value.substr(0, semicolon)));
  if (found.kind.find('/') == nowhere) found.kind = "text/plain";
  const std::string_view rest = semicolon == nowhere ? std::string_view() : value.substr(semicolon + 1);
  for (size_t start = 0; start < rest.size();) {
    // A name of 1 to 40 signs, as short as possible, blanks, an equals sign, blanks, and the value.
    size_t length = 0, equals = nowhere;
    while (equals == nowhere && length < 40 && start + length < rest.size()) {
      const char c = rest[start + length];
      if (c < '!' || c > '~') break;
      length++;
      const size_t after = start + length + blanks(rest, start + length);
      if (after < rest.size() && rest[after] == '=') equals = after;
    }
    if (equals == nowhere) {
      start++;
      continue;
    }
    size_t first = equals + 1 + blanks(rest, equals + 1), last = first, next;
    const size_t quote = first < rest.size() && rest[first] == '"' ? rest.find('"', first + 1) : nowhere;
    if (quote != nowhere && quote - first - 1 <= 400) {
      first++;
      last = quote;
      next = quote + 1;
    } else {
      while (last < rest.size() && last < first + 400 && rest[last] != ';' && rest[last] != '"' &&
             !is_.is(rest[last], MailCharacters::space)) {
        last++;
      }
      next = last;
    }
    std::string_view name = rest.substr(start, length);
    while (!name.empty() && name.front() == ';') name.remove_prefix(1);
    const std::string parameter = lowered(name.substr(0, name.find('*')));
    const std::string_view content = rest.substr(first, last - first);
    if (parameter == "boundary") {
      found.boundary += content;
      found.has_boundary = true;
    } else if (parameter == "charset") {
      found.charset += content;
      found.has_charset = true;
    }
    start = next;
  }
  return found;
}

void MailTokens::leaves(std::string_view raw, size_t start, size_t end, size_t depth) {
  const MailLimits& limits = reference_.limits;
  parts_left_--;
  const auto [head, body] = split_head(raw, start, end);
  const Headers headers = fields(slice(raw, start, std::min(head, start + limits.header_bytes)));
  const auto value_of = [&](std::string_view name) -> const std::string* {
    for (const auto& [other, value] : headers) {
      if (other == name) return &value;
    }
    return nullptr;
  };
  const std::string *type = value_of("content-type"), *disposition = value_of("content-disposition");
  ContentType content = content_type(type ? std::string_view(*type) : std::string_view());
  if (disposition) {
    const ContentType other = content_type(*disposition);
    if (!content.has_boundary) content.boundary = other.boundary;
    if (!content.has_charset) content.charset = other.charset;
  }
  const std::string* transfer = value_of("content-transfer-encoding");
  const std::string encoding = transfer ? lowered(stripped(*transfer)) : std::string();
  header_tokens(headers);
  if (size() > 8 * limits.tokens) throw OddMail();
  const std::string& kind = content.kind;
  if (starts(kind, "multipart/") && depth < limits.depth) {
    std::string boundary = content.boundary;
    while (!boundary.empty() && is_.is(boundary.back(), MailCharacters::space)) boundary.pop_back();
    if (!is_ascii(boundary)) throw OddMail();
    const auto inner = boundary.empty() ? decltype(places(raw, 0, 0, boundary, 0))()
                                        : places(raw, body, end, "--" + boundary, parts_left_);
    for (const auto& [first, last] : inner) {
      if (parts_left_ > 0) leaves(raw, first, last, depth + 1);
    }
    if (!inner.empty()) return;
  }
  if (starts(kind, "message/") && depth < limits.depth) {
    if (parts_left_ == 0) return;
    if (encoding == "base64" || encoding == "quoted-printable") throw OddMail();
    if (kind == "message/rfc822" || known_field_at(raw, body)) {
      leaves(raw, body, end, depth + 1);
    } else {
      text_tokens(text_of(slice(raw, body, std::min(end, body + limits.part_bytes)), ""), "text/plain");
    }
    return;
  }
  if (starts(kind, "text/") || starts(kind, "multipart/") || starts(kind, "message/")) {
    const size_t most = std::min(limits.part_bytes, bytes_left_);
    std::string_view bytes = slice(raw, body, std::min(end, body + (encoding.empty() ? most : 2 * most)));
    std::string own;
    if (!encoding.empty() && encoding != "7bit" && encoding != "8bit") {
      own = reference_.decoded(bytes, encoding);
      bytes = own;
    }
    bytes = bytes.substr(0, most);
    bytes_left_ -= bytes.size();
    text_tokens(text_of(bytes, content.charset), kind);
  } else {
    char sum[9];
    std::snprintf(sum, sizeof sum, "%08x", reference_.checksum(slice(raw, body, std::min(end, body + 4096))));
    emit("style:", kind);
    emit("bytes:", sum);
  }
  if (size() > 8 * limits.tokens) throw OddMail();
}

void MailTokens::read(std::string_view raw) {
  bytes_.clear();
  ends_.clear();
  parts_left_ = reference_.limits.parts;
  bytes_left_ = reference_.limits.text_bytes;
  raw = raw.substr(0, reference_.limits.mail_bytes);
  leaves(raw, 0, raw.size(), 0);
  bytes_.append(16, '\0');
}

}  // namespace tallybayes
