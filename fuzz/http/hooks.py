"""What schemathesis cannot know: when a server may say that it is full."""

import schemathesis


@schemathesis.check
def full_says_when_to_come_back(ctx, response, case):
    if response.status_code not in (503, 507):
        return
    if case.operation.path == "/readyz":
        return
    assert "retry-after" in response.headers, f"{response.status_code} without Retry-After: {response.text}"
