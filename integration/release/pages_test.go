package release

// docs is where the pages for users are.
const docs = "../../cmd/toolhost/docs/"
